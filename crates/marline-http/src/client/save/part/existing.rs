//! A file that has the name already: it keeps its other names, its owner, its permissions and its attributes.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek};
use std::path::Path;

/// The regular file at `path`, if there is one.
pub(super) fn at(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok().filter(Metadata::is_file)
}

/// Checks that this user may write to the file at `path`: replacing it would only need permissions of its directory.
#[cfg(unix)]
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};

    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

#[cfg(not(unix))]
pub(super) fn check_writable(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes `file` readable by this user only, as its content may be as secret as that of the file it
/// replaces.
#[cfg(unix)]
pub(super) fn close_to_others(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
pub(super) fn close_to_others(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Gives `file`, at `path`, the attributes of the `known` file at `target`, which it replaces. False if some would be
/// lost: then the content must be copied into that file.
#[cfg(unix)]
pub(super) fn inherit(file: &File, path: &Path, target: &Path, known: &Metadata) -> bool {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let Ok(own) = file.metadata() else {
        return false;
    };
    let is_owned = (own.uid(), own.gid()) == (known.uid(), known.gid())
        || fchown(file, Some(known.uid()), Some(known.gid())).is_ok();
    // The setuid and setgid bits are cleared, as after a write.
    let permissions = fs::Permissions::from_mode(known.mode() & 0o777);
    known.nlink() == 1
        && is_owned
        && file.set_permissions(permissions).is_ok()
        && attributes::are_equal(path, target)
}

#[cfg(not(unix))]
pub(super) fn inherit(_file: &File, _path: &Path, _target: &Path, _known: &Metadata) -> bool {
    true
}

/// Replaces the content of the file at `target` by that of `file`. The space for it is reserved before the first byte is written.
pub(super) fn copy_into(target: &Path, file: &mut File) -> io::Result<()> {
    let mut existing = OpenOptions::new().write(true).open(target)?;
    let len = file.metadata()?.len();
    reserve(&existing, len)?;
    file.rewind()?;
    let copied = io::copy(file, &mut existing)?;
    existing.set_len(copied)
}

#[cfg(target_os = "linux")]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    match len {
        0 => Ok(()),
        len => match fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error.into()),
            // Not every file system supports it.
            _ => Ok(()),
        },
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}

/// Extended attributes, such as access control lists.
#[cfg(target_os = "linux")]
mod attributes {
    use std::collections::BTreeMap;
    use std::path::Path;

    use rustix::fs::{lgetxattr, llistxattr};
    use rustix::io::{Errno, Result};

    /// The most bytes of the names of a file's attributes, and of one value, on Linux.
    const MAX_BYTES: usize = 1 << 16;

    pub(super) fn are_equal(path: &Path, other: &Path) -> bool {
        match (of(path), of(other)) {
            (Ok(these), Ok(those)) => these == those,
            _ => false,
        }
    }

    fn of(path: &Path) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let mut names = vec![0; MAX_BYTES];
        let len = match llistxattr(path, &mut names) {
            Err(Errno::NOTSUP) => 0,
            len => len?,
        };
        let mut attributes = BTreeMap::new();
        for name in names[..len].split(|byte| *byte == 0) {
            if !name.is_empty() {
                let mut value = vec![0; MAX_BYTES];
                let len = lgetxattr(path, name, &mut value)?;
                value.truncate(len);
                attributes.insert(name.to_vec(), value);
            }
        }
        Ok(attributes)
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod attributes {
    use std::path::Path;

    pub(super) fn are_equal(_path: &Path, _other: &Path) -> bool {
        true
    }
}
