//! Files that are incomplete.

mod claim;
mod existing;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use http::HeaderValue;
use marline::Sha256;

use self::claim::{Claim, claim, open_own};
use super::{ClientError, Validator, failed};

/// The longest validator that is stored; servers' entity tags are tens of bytes.
const MAX_VALIDATOR: u64 = 1024;

/// Names that are tried for a part: each fetch of one file at the same time takes another.
const MAX_NAMES: usize = 100;

/// The longest name of a file; a name of this length is shortened for the part.
const MAX_NAME: usize = 255;

/// A file that is incomplete: `.NAME.part` next to its target, and `.NAME.part.tag` with the validator for
/// resumption. Removed when dropped, unless it is to be resumed.
///
/// The next fetch takes over the file of a killed one if it belongs to this user. If another fetch is writing it, or if
/// it belongs to another user, a fetch that does not resume uses `.NAME.2.part`, and so on.
///
/// A target that exists keeps its owner, permissions and attributes. It is replaced if the new file can be given these. If it
/// cannot, or if the target has other names or is a file in a directory that this user cannot write to, the content is copied
/// into it once it is complete.
pub(super) struct Part {
    /// As the user wrote it.
    name: PathBuf,
    /// The resulting step.
    target: PathBuf,
    /// The names of the file, unless it has none: its directory cannot be written to.
    names: Option<Names>,
    file: File,
    validator: Validator,
    keep: bool,
}

struct Names {
    path: PathBuf,
    tag: PathBuf,
}

impl Names {
    fn of(path: PathBuf) -> Self {
        let mut tag = path.clone().into_os_string();
        tag.push(".tag");
        let tag = PathBuf::from(tag);
        Self { path, tag }
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.tag);
    }
}

impl Part {
    /// A part for the file `target`, which the user calls `name`.
    pub(super) fn open(name: &Path, target: PathBuf, keep: bool) -> Result<Self, ClientError> {
        if target.file_name().is_none() || target.is_dir() {
            return Err(failed(name, io::ErrorKind::IsADirectory.into()));
        }
        let exists = existing::at(&target).is_some();
        if exists {
            existing::check_writable(&target).map_err(|cause| failed(name, cause))?;
        }
        let found = match find(&target, keep) {
            Err(ClientError::File { cause, .. }) if exists && !keep && is_refused(&cause) => {
                unnamed()?
            }
            found => found?,
        };
        let mut part = Self {
            name: name.to_owned(),
            target,
            names: found.names,
            file: found.file,
            validator: Validator::default(),
            keep,
        };
        if exists {
            let closed = existing::close_to_others(&part.file);
            closed.map_err(|cause| failed(&part.path(), cause))?;
        }
        let Some(names) = &part.names else {
            return Ok(part);
        };
        if keep {
            part.validator = read_tag(&names.tag);
        } else {
            let emptied = part.file.set_len(0);
            emptied.map_err(|cause| failed(&names.path, cause))?;
            let _ = fs::remove_file(&names.tag);
        }
        Ok(part)
    }

    /// Its path, for messages.
    pub(super) fn path(&self) -> PathBuf {
        match &self.names {
            Some(names) => names.path.clone(),
            None => std::env::temp_dir(),
        }
    }

    pub(super) fn validator(&self) -> Option<&HeaderValue> {
        self.validator.0.as_ref()
    }

    /// Another handle of the file.
    pub(super) fn second_handle(&self) -> Result<File, ClientError> {
        let file = self.file.try_clone();
        file.map_err(|cause| failed(&self.path(), cause))
    }

    /// Hashes the part of an earlier attempt; the file's position is then at its end.
    pub(super) fn hash_existing(&mut self, hash: &mut Sha256) -> Result<u64, ClientError> {
        match self.validator.0 {
            None => Ok(0),
            Some(_) => self.hash_rest(hash),
        }
    }

    /// Hashes the whole file, and returns the number of bytes.
    pub(super) fn hash_all(&mut self, hash: &mut Sha256) -> Result<u64, ClientError> {
        let rewound = self.file.rewind();
        rewound.map_err(|cause| failed(&self.path(), cause))?;
        self.hash_rest(hash)
    }

    /// Hashes from the file's position to its end, and returns the number of bytes.
    fn hash_rest(&mut self, hash: &mut Sha256) -> Result<u64, ClientError> {
        let mut buffer = vec![0; 1 << 16];
        let mut len = 0;
        loop {
            match self.file.read(&mut buffer) {
                Ok(0) => return Ok(len),
                Ok(read) => {
                    hash.update(&buffer[..read]);
                    len += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.path(), error)),
            }
        }
    }

    pub(super) fn start_over(&mut self, validator: Validator) -> Result<(), ClientError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|cause| failed(&self.path(), cause))?;
        self.validator = validator;
        let Some(Names { tag, .. }) = self.names.as_ref().filter(|_| self.keep) else {
            return Ok(());
        };
        // Without a validator nothing can be resumed.
        let _ = fs::remove_file(tag);
        match &self.validator.0 {
            Some(value) => write_new(tag, value.as_bytes()).map_err(|e| failed(tag, e)),
            None => Ok(()),
        }
    }

    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        let written = self.file.write_all(chunk);
        written.map_err(|cause| failed(&self.path(), cause))
    }

    /// Gives the target the content. Returns its name, as the user wrote it.
    pub(super) fn publish(mut self) -> Result<PathBuf, ClientError> {
        let is_replaced = self.replace().map_err(|cause| failed(&self.name, cause))?;
        if !is_replaced {
            let copied = existing::copy_into(&self.target, &mut self.file);
            copied.map_err(|cause| failed(&self.name, cause))?;
        }
        if let Some(names) = self.names.take() {
            names.remove();
        }
        Ok(std::mem::take(&mut self.name))
    }

    /// Renames the file to its target. False if a target exists that would lose something.
    fn replace(&self) -> io::Result<bool> {
        let existing = existing::at(&self.target);
        let path = self.names.as_ref().map(|names| &names.path);
        match (path, existing) {
            (Some(path), None) => fs::rename(path, &self.target).map(|()| true),
            (Some(path), Some(known)) => {
                // Names cannot be changed in every directory, nor those of all files: one may be a mount point.
                let may_replace = existing::inherit(&self.file, path, &self.target, &known);
                Ok(may_replace && fs::rename(path, &self.target).is_ok())
            }
            (None, _) => Ok(false),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Without a validator, a part that is kept could not be resumed.
        if let Some(names) = &self.names
            && (!self.keep || self.validator.0.is_none())
        {
            names.remove();
        }
    }
}

/// A file for a part.
struct Found {
    names: Option<Names>,
    file: File,
}

/// The file beside `target` that is free, the first of them if it is to be kept.
fn find(target: &Path, keep: bool) -> Result<Found, ClientError> {
    let beside = |suffix: &str| {
        let mut hidden = OsString::from(".");
        hidden.push(shortened(target.file_name().unwrap_or_default()));
        hidden.push(suffix);
        target.with_file_name(hidden)
    };
    let found = |path, file| Found {
        names: Some(Names::of(path)),
        file,
    };
    let first = beside(".part");
    let claimed = claim(&first).map_err(|cause| failed(&first, cause))?;
    match claimed {
        Claim::Own(file) => Ok(found(first, file)),
        refused if keep => Err(failed(&first, refused.explain())),
        refused => {
            let mut others = (2..=MAX_NAMES).map(|number| beside(&format!(".{number}.part")));
            let other = others.find_map(|path| match claim(&path) {
                Ok(Claim::Own(file)) => Some(found(path, file)),
                _ => None,
            });
            other.ok_or_else(|| failed(&first, refused.explain()))
        }
    }
}

/// The beginning of `name`, short enough for the suffix of a part.
#[cfg(unix)]
fn shortened(name: &OsStr) -> &OsStr {
    use std::os::unix::ffi::OsStrExt;

    let room = MAX_NAME - "..100.part.tag".len();
    OsStr::from_bytes(&name.as_bytes()[..name.len().min(room)])
}

#[cfg(not(unix))]
fn shortened(name: &OsStr) -> &OsStr {
    name
}

/// A file without a name, for a target whose directory cannot have another file.
fn unnamed() -> Result<Found, ClientError> {
    let file = tempfile::tempfile();
    let file = file.map_err(|cause| failed(&std::env::temp_dir(), cause))?;
    Ok(Found { names: None, file })
}

/// Whether a directory takes no new files.
fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content)
}

fn read_tag(path: &Path) -> Validator {
    let mut tag = Vec::new();
    let read = open_own(path, OpenOptions::new().read(true))
        .and_then(|file| file.take(MAX_VALIDATOR).read_to_end(&mut tag));
    let usable = read.is_ok() && !tag.is_empty() && (tag.len() as u64) < MAX_VALIDATOR;
    Validator(usable.then(|| HeaderValue::from_bytes(&tag).ok()).flatten())
}

#[cfg(all(test, unix))]
mod tests;
