//! Files beside a target that this process alone writes, though others can write to the directory.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// The owner of the file that has the name.
pub(super) enum Claim {
    /// This process alone; the file may contain the data of an earlier one.
    Own(File),
    /// Another process writes it.
    InUse,
    /// A link, no regular file, or another user's.
    Foreign,
}

impl Claim {
    /// Why it cannot be written.
    pub(super) fn explain(&self) -> io::Error {
        let text = match self {
            Self::Own(_) | Self::InUse => "another process writes it",
            Self::Foreign => "it is a link, or not a file of this user's; remove it",
        };
        io::Error::other(text)
    }
}

/// Creates the file at `path`, with the permissions of the umask, or takes over the file of an earlier process.
pub(super) fn claim(path: &Path) -> io::Result<Claim> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let file = match options.clone().create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match open_own(path, &mut options) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Claim::InUse),
                Err(_) => return Ok(Claim::Foreign),
            }
        }
        Err(error) => return Err(error),
    };
    match lock(&file) && is_at(&file, path) {
        true => Ok(Claim::Own(file)),
        false => Ok(Claim::InUse),
    }
}

/// Opens a regular file of this user's that has no other name, and follows no link to it.
#[cfg(unix)]
pub(super) fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    use rustix::fs::OFlags;

    // Without `NONBLOCK`, a pipe is waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    let known = file.metadata()?;
    let is_own = known.uid() == rustix::process::geteuid().as_raw();
    match known.is_file() && is_own && known.nlink() <= 1 {
        true => Ok(file),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

#[cfg(not(unix))]
pub(super) fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.open(path)
}

/// Locks the file until it is closed; false if another process has. File systems without locks have none to wait for.
#[cfg(unix)]
fn lock(file: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

#[cfg(not(unix))]
fn lock(_file: &File) -> bool {
    true
}

/// Whether the name is still that of the file: the process that had it locked may have renamed or removed it.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let there = std::fs::symlink_metadata(path);
    match (file.metadata(), there) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}
