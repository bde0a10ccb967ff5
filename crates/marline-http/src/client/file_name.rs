//! The name that a response gives to its content (RFC 6266).

use std::io;
use std::path::{Path, PathBuf};

use http::HeaderMap;
use http::header::CONTENT_DISPOSITION;

use super::ClientError;
use super::target::percent_decoded;

/// The longest name of a file.
const MAX_NAME: usize = 255;

/// The path in `directory` for the content of a response with these fields; `name` is for those that give none.
///
/// # Errors
/// There is a file of the name that the server gives.
pub(super) fn path(
    directory: &Path,
    name: &str,
    headers: &HeaderMap,
) -> Result<PathBuf, ClientError> {
    let Some(given) = given(headers) else {
        return Ok(directory.join(name));
    };
    let path = directory.join(given);
    match path.symlink_metadata() {
        Ok(_) => Err(ClientError::File {
            path,
            cause: io::ErrorKind::AlreadyExists.into(),
        }),
        Err(_) => Ok(path),
    }
}

/// The name that the fields give, if it is safe.
fn given(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_DISPOSITION)?;
    let value = String::from_utf8_lossy(value.as_bytes());
    let (mut plain, mut extended) = (None, None);
    for parameter in parameters(&value) {
        match parameter.name.as_str() {
            "filename" => plain = Some(parameter.value),
            "filename*" => {
                let text = parameter
                    .value
                    .splitn(3, '\'')
                    .nth(2)
                    .and_then(percent_decoded);
                extended = text.and_then(|bytes| String::from_utf8(bytes).ok());
            }
            _ => {}
        }
    }
    safe(&extended.or(plain)?)
}

struct Parameter {
    /// In lower case.
    name: String,
    value: String,
}

/// The parameters after the first semicolon; quotes are removed.
fn parameters(value: &str) -> Vec<Parameter> {
    let mut all = Vec::new();
    let mut rest = value.split_once(';').map_or("", |(_, rest)| rest);
    while let Some((name, after)) = rest.split_once('=') {
        let (name, after) = (name.trim().to_ascii_lowercase(), after.trim_start());
        let mut value = String::new();
        match after.strip_prefix('"') {
            None => {
                let end = after.find(';').unwrap_or(after.len());
                value.push_str(after[..end].trim());
                rest = after[end..].trim_start_matches(';');
            }
            Some(quoted) => {
                let mut characters = quoted.char_indices();
                let mut end = quoted.len();
                while let Some((at, character)) = characters.next() {
                    match character {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                        other => value.push(other),
                    }
                }
                rest = quoted[end..].trim_start().trim_start_matches(';');
            }
        }
        all.push(Parameter { name, value });
    }
    all
}

/// The last part of a name, which cannot be a path, without dots at its beginning.
fn safe(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let last = last.trim_start_matches('.');
    let is_safe = !last.is_empty() && last.len() <= MAX_NAME && !last.chars().any(char::is_control);
    is_safe.then(|| last.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn names_of_servers_are_safe_or_not_used() {
        for (value, name) in [
            ("attachment; filename=a.txt", Some("a.txt")),
            (
                "attachment; filename=\"a b;\\\"c.txt\"; x=1",
                Some("a b;\"c.txt"),
            ),
            (
                "attachment; filename=x; filename*=UTF-8''%e2%82%ac.txt",
                Some("\u{20ac}.txt"),
            ),
            ("attachment; filename=\"../../etc/passwd\"", Some("passwd")),
            ("attachment; filename=\"C:\\\\x\\\\y.txt\"", Some("y.txt")),
            ("attachment; filename=.bashrc", Some("bashrc")),
            ("attachment; filename=\"..\"", None),
            ("attachment; filename*=UTF-8''a%00b", None),
            ("inline", None),
        ] {
            let headers = HeaderMap::from_iter([(
                CONTENT_DISPOSITION,
                HeaderValue::from_str(value).unwrap(),
            )]);
            assert_eq!(given(&headers).as_deref(), name, "{value}");
        }
    }

    #[test]
    fn files_that_exist_are_not_replaced_by_names_of_servers() {
        let directory = tempfile::tempdir().unwrap();
        let headers = HeaderMap::from_iter([(
            CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=a"),
        )]);
        let found = path(directory.path(), "b", &headers).unwrap();
        assert_eq!(found, directory.path().join("a"));
        std::fs::write(&found, "").unwrap();
        assert!(path(directory.path(), "b", &headers).is_err());
        assert!(path(directory.path(), "b", &HeaderMap::new()).is_ok());
    }
}
