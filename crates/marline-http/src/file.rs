//! Opening files without blocking.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The content of the regular file at `path`, which may have `limit` bytes.
///
/// A named pipe or a device could block the caller, or have no end.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is larger.
pub fn read_regular_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open_file(open_regular_file(path)?, limit)
}

/// Opens the regular file at `path` for reading.
pub(crate) fn open_regular_file(path: &Path) -> io::Result<File> {
    let file = open(path, OpenOptions::new().read(true))?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Opens the named pipe or device at `path` for reading, whether or not a program writes to it. Reads do not block.
///
/// # Errors
/// It cannot be read, or is a directory.
#[cfg(target_os = "linux")]
pub(crate) fn open_input(path: &Path) -> io::Result<File> {
    let file = open(path, OpenOptions::new().read(true))?;
    match file.metadata()?.is_dir() {
        true => Err(io::Error::other("it is a directory")),
        false => Ok(file),
    }
}

/// The content of a regular file that is open, which may have `limit` bytes.
pub(crate) fn read_open_file(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut file = file.take(limit.saturating_add(1));
    match file.read_to_end(&mut content)? as u64 > limit {
        true => Err(io::Error::other(format!("it has more than {limit} bytes"))),
        false => Ok(content),
    }
}

/// Opens the file at `path` for appending, and creates it if there is none. It may be a named pipe that a process reads, or
/// a terminal. Writes to it may block.
///
/// # Errors
/// The file cannot be written, or is a pipe that no process reads.
pub(crate) fn open_for_appending(path: &Path) -> io::Result<File> {
    let opened = open(path, OpenOptions::new().create(true).append(true));
    let file = opened.map_err(|error| match has_no_reader(&error) {
        true => io::Error::other("no process reads this pipe; start that first"),
        false => error,
    })?;
    block(&file)?;
    Ok(file)
}

/// Opens the named pipe, device or descriptor at `path` for writing; on Linux, without waiting for a reader of a pipe. Writes to it may
/// block.
///
/// # Errors
/// It cannot be written. [`lacks_reader`] says whether it is a pipe that no process reads yet.
pub(crate) fn open_output(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(true);
    if !cfg!(target_os = "linux") {
        return options.open(path);
    }
    let file = open(path, &mut options)?;
    block(&file)?;
    Ok(file)
}

/// Whether opening the file at `path` has failed with `error` because it is a named pipe that no process reads.
#[cfg(unix)]
pub(crate) fn lacks_reader(path: &Path, error: &io::Error) -> bool {
    use std::os::unix::fs::FileTypeExt;

    let is_pipe = || std::fs::metadata(path).is_ok_and(|known| known.file_type().is_fifo());
    has_no_reader(error) && is_pipe()
}

#[cfg(not(unix))]
pub(crate) fn lacks_reader(_path: &Path, _error: &io::Error) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;

    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => options.open(path),
    }
}

#[cfg(target_os = "linux")]
fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

#[cfg(not(target_os = "linux"))]
fn has_no_reader(_error: &io::Error) -> bool {
    false
}

/// Writes wait from now on.
#[cfg(target_os = "linux")]
fn block(file: &File) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let flags = fcntl_getfl(file)? - OFlags::NONBLOCK;
    Ok(fcntl_setfl(file, flags)?)
}

#[cfg(not(target_os = "linux"))]
fn block(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Write;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tempfile::TempDir;

    use super::*;

    fn pipe(directory: &TempDir) -> std::path::PathBuf {
        let path = directory.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        path
    }

    #[test]
    fn only_regular_files_up_to_a_size_are_read() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"12345").unwrap();
        assert_eq!(read_regular_file(&path, 5).unwrap(), b"12345");
        let error = read_regular_file(&path, 4).unwrap_err().to_string();
        assert!(error.contains("more than 4 bytes"), "{error}");
        for other in [&pipe(&directory), Path::new("/dev/zero"), directory.path()] {
            let error = read_regular_file(other, 5).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
    }

    #[test]
    fn a_pipe_is_written_if_a_process_reads_it_and_refused_otherwise() {
        let directory = TempDir::new().unwrap();
        let path = pipe(&directory);
        let error = open_for_appending(&path).unwrap_err().to_string();
        assert!(error.contains("no process reads"), "{error}");
        let mut reader = open(&path, OpenOptions::new().read(true)).unwrap();
        let mut writer = open_for_appending(&path).unwrap();
        writer.write_all(b"12345").unwrap();
        let mut read = [0; 5];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"12345");
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    }
}
