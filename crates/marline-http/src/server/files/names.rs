//! Names of files that are not UTF-8, as text, which is all that `ServeDir` supports.

use std::io;
use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// The first of the characters that stand for the bytes from 0x80 to 0xff, at the end of Unicode: a name is encoded byte by byte.
const FIRST: u32 = 0x10_ff80;

/// The bytes that are escaped in the path of a file.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_');

/// The bytes that are escaped in the target of a redirect, which is a path of a request: those not allowed in a URI, and those that
/// browsers treat as `/`.
const TARGET: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The path of a request, in which all decoded bytes are text.
pub(super) fn textual(path: &str) -> String {
    let name: Vec<u8> = percent_decode(path.as_bytes()).collect();
    percent_encode(text(&name).as_bytes(), PATH).to_string()
}

fn text(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    let push_bytes = |text: &mut String, bytes: &[u8]| {
        let stand_ins = bytes.iter().map(|byte| u32::from(*byte) - 0x80 + FIRST);
        text.extend(stand_ins.filter_map(char::from_u32));
    };
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match u32::from(character) >= FIRST {
                true => push_bytes(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes()),
                false => text.push(character),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

/// The path that `ServeDir` made of a [`textual`] one, with the bytes of its names.
#[cfg(unix)]
pub(super) fn actual(path: &Path) -> PathBuf {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let Some(text) = path.to_str() else {
        return path.to_owned();
    };
    let mut name = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u32::from(character).checked_sub(FIRST).map(u8::try_from) {
            Some(Ok(low)) => name.push(0x80 + low),
            _ => name.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(name).into()
}

/// The same path: names are text.
#[cfg(not(unix))]
pub(super) fn actual(path: &Path) -> PathBuf {
    path.to_owned()
}

/// The path of a file or directory below the served one, for the `path` of a request.
///
/// # Errors
/// The path would leave the directory.
#[cfg(unix)]
pub(super) fn relative(path: &str) -> io::Result<PathBuf> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let name: Vec<u8> = percent_decode(path.as_bytes()).collect();
    checked(Path::new(&OsString::from_vec(name)))
}

/// The same: names are text.
///
/// # Errors
/// The path would leave the directory.
#[cfg(not(unix))]
pub(super) fn relative(path: &str) -> io::Result<PathBuf> {
    let name = percent_decode(path.as_bytes()).decode_utf8();
    let name = name.map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    checked(Path::new(&*name))
}

fn checked(path: &Path) -> io::Result<PathBuf> {
    let mut relative = PathBuf::from(".");
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => relative.push(name),
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
    }
    Ok(relative)
}

/// The target of a redirect from `path` to the directory that it names.
pub(super) fn directory(path: &str, query: Option<&str>) -> String {
    let escaped = percent_encode(path.as_bytes(), TARGET);
    match query {
        Some(query) => format!("{escaped}/?{}", percent_encode(query.as_bytes(), TARGET)),
        None => format!("{escaped}/"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_comes_back(name in proptest::collection::vec(any::<u8>(), 0..20)) {
            let found = actual(Path::new(&text(&name)));
            prop_assert_eq!(found.as_os_str().as_bytes(), &name);
        }

        #[test]
        fn stand_ins_are_names_too(name in "[\u{10ff70}-\u{10ffff}a-z]{0,20}") {
            let found = actual(Path::new(&text(name.as_bytes())));
            prop_assert_eq!(found.as_os_str().as_bytes(), name.as_bytes());
        }
    }

    #[test]
    fn text_stays_as_it_is() {
        assert_eq!(textual("/a%20b/%C3%BC%2B%25"), "/a%20b/%C3%BC%2B%25");
        assert_eq!(
            directory("/a%20\u{fc}\\", Some("q=\u{fc}")),
            "/a%20%C3%BC%5C/?q=%C3%BC"
        );
    }
}
