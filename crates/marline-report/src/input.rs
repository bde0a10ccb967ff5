//! Files that a user names: of limited size, and only regular ones. A pipe without a writer would block, and a device
//! has no end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let known = fs::metadata(path)?;
    if known.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !known.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    File::open(path)
}

/// The text of a regular file, which may have `limit` bytes.
///
/// # Errors
/// As [`open`]; it is larger, or not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A file may grow, or have a size that is not known in advance, as those of /proc.
    let length = open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if length as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {limit} bytes"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("line {line} is not UTF-8; save it as UTF-8"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_their_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "hello").unwrap();
        assert_eq!(read_text(file.path(), 5).unwrap(), "hello");
        let error = read_text(file.path(), 4).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 4 bytes");
    }

    #[test]
    fn bytes_that_are_no_text_are_named_by_their_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, b"title = 'x'\nlink = 'caf\xe9'\n").unwrap();
        let error = read_text(file.path(), 100).unwrap_err();
        assert_eq!(error.to_string(), "line 2 is not UTF-8; save it as UTF-8");
    }

    #[test]
    fn directories_devices_and_sparse_files_are_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let error = open(directory.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        let sparse = directory.path().join("sparse");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert!(read_text(&sparse, 1000).is_err());
        #[cfg(unix)]
        {
            let error = open(Path::new("/dev/zero")).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file");
        }
    }
}
