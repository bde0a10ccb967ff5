//! The place of content that is to have a name: through symbolic links, as if the file were written in place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed one after another; as many as Linux follows.
const MAX_LINKS: usize = 40;

/// The target of a name.
#[derive(Debug, PartialEq)]
pub(super) enum Place {
    /// Standard output of this process, under a name such as `/dev/stdout`.
    StandardOutput,
    /// A device, a pipe or a socket, which is written to and not replaced; or a descriptor of a process, as `/dev/fd/3`.
    Stream,
    /// The name without links of a regular file, which may not exist yet.
    File(PathBuf),
}

impl Place {
    /// The target of `path`.
    ///
    /// # Errors
    /// Its links lead in a circle.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut place = path.to_owned();
        for _ in 0..=MAX_LINKS {
            let Ok(link) = fs::read_link(&place) else {
                return Ok(match is_stream(&place) {
                    true => Self::Stream,
                    false => Self::File(place),
                });
            };
            match descriptor(&place) {
                Some(Descriptor::StandardOutput) => return Ok(Self::StandardOutput),
                Some(Descriptor::Other) => return Ok(Self::Stream),
                None => {}
            }
            place = match place.parent() {
                Some(parent) => parent.join(link),
                None => link,
            };
        }
        Err(io::Error::other("too many symbolic links"))
    }
}

fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|known| !known.is_file() && !known.is_dir())
}

enum Descriptor {
    StandardOutput,
    Other,
}

/// The descriptor that the link at `path` is, if it is one of `/proc`: its target has no name that could be given to
/// another file.
#[cfg(target_os = "linux")]
fn descriptor(path: &Path) -> Option<Descriptor> {
    use rustix::fs::{PROC_SUPER_MAGIC, statfs};

    let directory = fs::canonicalize(path.parent()?).ok()?;
    let is_of_proc = statfs(&directory).ok()?.f_type == PROC_SUPER_MAGIC;
    if !is_of_proc || directory.file_name()? != "fd" {
        return None;
    }
    let own = Path::new("/proc").join(std::process::id().to_string());
    let is_own = directory == own.join("fd");
    match is_own && path.file_name()? == "1" {
        true => Some(Descriptor::StandardOutput),
        false => Some(Descriptor::Other),
    }
}

#[cfg(not(target_os = "linux"))]
fn descriptor(_path: &Path) -> Option<Descriptor> {
    None
}
