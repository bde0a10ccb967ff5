//! Files that are read as a whole, up to a size: a device or a pipe may have no end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::STANDARD_OUTPUT as STANDARD_INPUT;

/// The size of files with flags, header fields or formats, in bytes.
pub(crate) const MAX_SMALL: u64 = 1 << 20;

/// The size of files with credentials of hosts, or with what is known of servers, in bytes.
pub(super) const MAX_LIST: u64 = 16 << 20;

/// The size of content that is sent from memory, in bytes; that of `-T` is read while it is sent.
pub(super) const MAX_CONTENT: u64 = 256 << 20;

/// The content of the file at `path`.
///
/// # Errors
/// It cannot be read, or has more than `limit` bytes.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    up_to(limit, File::open(path)?)
}

/// As [`read`]; the path `-` is standard input.
pub(super) fn read_input(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    match *path.as_os_str() == *STANDARD_INPUT {
        true => up_to(limit, io::stdin().lock()),
        false => read(path, limit),
    }
}

/// As [`read`], for text.
pub(super) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// As [`read_input`], for text.
pub(crate) fn read_input_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read_input(path, limit)?)
}

fn up_to(limit: u64, source: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(limit + 1).read_to_end(&mut content)?;
    match content.len() as u64 > limit {
        true => Err(io::Error::other(format!(
            "it has more than {} MiB",
            limit >> 20
        ))),
        false => Ok(content),
    }
}

fn text(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content).map_err(|_| io::Error::other("it is not text in UTF-8"))
}
