//! Files that are incomplete.

mod claim;

use std::ffi::OsString;
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

/// A file that is incomplete: `.NAME.part` next to its target, and `.NAME.part.tag` with the validator for
/// resumption. Removed when dropped, unless it is to be resumed.
///
/// What a fetch left that was killed is taken over by the next, if it is a file of this user's. If another fetch writes it,
/// or if it is somebody else's, a fetch that does not resume takes `.NAME.2.part`, and so on.
pub(super) struct Part {
    target: PathBuf,
    path: PathBuf,
    tag: PathBuf,
    file: File,
    validator: Validator,
    keep: bool,
}

impl Part {
    pub(super) fn open(target: &Path, keep: bool) -> Result<Self, ClientError> {
        let Some(name) = target.file_name().filter(|_| !target.is_dir()) else {
            return Err(failed(target, io::ErrorKind::IsADirectory.into()));
        };
        let beside = |suffix: &str| {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(suffix);
            target.with_file_name(hidden)
        };
        let first = beside(".part");
        let claimed = claim(&first).map_err(|cause| failed(&first, cause))?;
        let (path, file) = match claimed {
            Claim::Own(file) => (first, file),
            refused if keep => return Err(failed(&first, refused.explain())),
            refused => {
                let others = (2..=MAX_NAMES).map(|number| beside(&format!(".{number}.part")));
                let found = others.into_iter().find_map(|path| match claim(&path) {
                    Ok(Claim::Own(file)) => Some((path, file)),
                    _ => None,
                });
                found.ok_or_else(|| failed(&first, refused.explain()))?
            }
        };
        let mut tag = path.clone().into_os_string();
        tag.push(".tag");
        let tag = PathBuf::from(tag);
        let mut part = Self {
            target: target.to_owned(),
            path,
            tag,
            file,
            validator: Validator::default(),
            keep,
        };
        if keep {
            part.validator = read_tag(&part.tag);
        } else {
            let emptied = part.file.set_len(0);
            emptied.map_err(|cause| failed(&part.path, cause))?;
            let _ = fs::remove_file(&part.tag);
        }
        Ok(part)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn validator(&self) -> Option<&HeaderValue> {
        self.validator.0.as_ref()
    }

    /// Another handle of the file.
    pub(super) fn second_handle(&self) -> Result<File, ClientError> {
        let file = self.file.try_clone();
        file.map_err(|cause| failed(&self.path, cause))
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
        rewound.map_err(|cause| failed(&self.path, cause))?;
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
                Err(error) => return Err(failed(&self.path, error)),
            }
        }
    }

    pub(super) fn start_over(&mut self, validator: Validator) -> Result<(), ClientError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|cause| failed(&self.path, cause))?;
        self.validator = validator;
        if !self.keep {
            return Ok(());
        }
        // Without a validator nothing can be resumed.
        let _ = fs::remove_file(&self.tag);
        match &self.validator.0 {
            Some(tag) => write_new(&self.tag, tag.as_bytes()).map_err(|e| failed(&self.tag, e)),
            None => Ok(()),
        }
    }

    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        let written = self.file.write_all(chunk);
        written.map_err(|cause| failed(&self.path, cause))
    }

    pub(super) fn publish(mut self) -> Result<PathBuf, ClientError> {
        let renamed = fs::rename(&self.path, &self.target);
        renamed.map_err(|cause| failed(&self.target, cause))?;
        let _ = fs::remove_file(&self.tag);
        // Nothing is left to remove.
        self.keep = true;
        Ok(self.target.clone())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Without a validator, a part that is kept could not be resumed.
        if !self.keep || (self.path.exists() && self.validator.0.is_none()) {
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_file(&self.tag);
        }
    }
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
