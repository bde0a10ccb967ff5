//! The changes that a client has made on its host, in a file, so that it is put back even if the client is killed.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::programs::{DIRECTORY, ProgramChoice, Programs, ProgramsError};
use crate::routing::{Plan, Routing};

/// Bytes of such a file; each of at most some 16,000 routes takes 80.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The server of a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// As the user has written it.
    pub host: &'a str,
    /// Its address.
    pub address: IpAddr,
}

/// The rules and routes of a client's tunnel. Dropped, they are removed.
#[derive(Debug)]
pub struct Changes {
    file: PathBuf,
    saved: Saved,
}

/// The content of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Saved {
    device: String,
    process: u32,
    /// When the process began, in clock ticks after the start of the machine: process IDs are used again.
    began: u64,
    /// The server, as the user has written it.
    #[serde(default)]
    host: String,
    /// Its address.
    #[serde(default)]
    server: Option<IpAddr>,
    plan: Plan,
    #[serde(default)]
    programs: Programs,
}

/// A client's tunnel that a file shows.
#[derive(Clone, Debug)]
pub struct Found {
    file: PathBuf,
    saved: Saved,
}

/// Why changes are not made, or not removed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file cannot be written, read or removed.
    #[error("cannot use {}, which says what to put back: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// The content of the file is not that of marline.
    #[error(
        "{}, which says what to put back, is damaged: {cause}; remove it, and what `ip rule` and `ip -6 rule` show with the priorities \
         28001 to 28004 (`ip rule del priority 28001`), or restart the machine",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: serde_json::Error,
    },
    /// Another tunnel has such rules or routes.
    #[error(
        "another tunnel has routes on this machine, which has one at a time; end it with `marline tunnel down`, and --device if it \
         has another name than marline0"
    )]
    InUse,
    /// The kernel refuses.
    #[error("cannot change the routes of this machine: {0}")]
    Routes(io::Error),
    /// Packets of programs cannot be told from others.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
}

/// The file of the tunnel of a device in this network namespace: others have rules, routes and devices of their own, and mostly
/// the same files.
fn file_of(device: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("tunnel-{}-{device}.json", namespace()))
}

/// The number of this network namespace.
fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;

    fs::metadata("/proc/self/ns/net").map_or(0, |namespace| namespace.ino())
}

/// Whether a device is that of a client's tunnel, running or killed.
pub(crate) fn is_tunnel(device: &str) -> bool {
    file_of(device).exists()
}

impl Changes {
    /// Makes the changes of `plan` for the tunnel of `device` to `server`, and marks the packets of `programs`. What a killed client
    /// has left for this device is replaced, without a moment in which packets of the same programs pass beside the tunnel.
    ///
    /// # Errors
    /// See [`RestoreError`]. Nothing is left but what a killed client has left.
    pub fn make(
        device: &str,
        server: Server<'_>,
        plan: Plan,
        programs: &ProgramChoice,
    ) -> Result<Self, RestoreError> {
        let left = Found::of(device)?;
        let programs = Programs::find(programs, device, namespace())?;
        let file = file_of(device);
        let process = std::process::id();
        let saved = Saved {
            device: device.to_owned(),
            process,
            began: began(process).unwrap_or(0),
            host: server.host.to_owned(),
            server: Some(server.address),
            plan,
            programs,
        };
        if let Some(left) = left {
            if left.saved.programs == saved.programs {
                return Self::instead_of(&left.saved, file, saved);
            }
            left.remove()?;
        }
        // Before the changes: whatever happens, they are known.
        write(&file, &saved)?;
        let applied = Routing::open().and_then(|mut routing| routing.apply(&saved.plan));
        if let Err(error) = applied {
            // Nothing is to be put back.
            let _ = fs::remove_file(&file);
            return Err(refused(error));
        }
        let changes = Self { file, saved };
        changes.saved.programs.mark()?;
        Ok(changes)
    }

    /// Makes the changes of `saved` instead of those of `left`, which are as far there as nobody has removed them.
    fn instead_of(left: &Saved, file: PathBuf, saved: Saved) -> Result<Self, RestoreError> {
        let mut both = saved.clone();
        both.plan = left.plan.with(&saved.plan.without(&left.plan));
        write(&file, &both)?;
        let mut routing = Routing::open().map_err(RestoreError::Routes)?;
        if let Err(error) = routing.apply_over(&saved.plan, &left.plan) {
            write(&file, left)?;
            return Err(refused(error));
        }
        saved.programs.mark()?;
        let old = left.plan.without(&saved.plan);
        routing.remove(&old).map_err(RestoreError::Routes)?;
        write(&file, &saved)?;
        Ok(Self { file, saved })
    }

    /// Replaces the rules and routes. Those of before are removed last: meanwhile, nothing passes beside the tunnel.
    ///
    /// # Errors
    /// See [`RestoreError`]. Those of before stay.
    pub fn replace(&mut self, server: IpAddr, plan: Plan) -> Result<(), RestoreError> {
        self.saved.server = Some(server);
        let (added, removed) = (
            plan.without(&self.saved.plan),
            self.saved.plan.without(&plan),
        );
        if added.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let mut routing = Routing::open().map_err(RestoreError::Routes)?;
        let mut both = self.saved.clone();
        both.plan = self.saved.plan.with(&added);
        write(&self.file, &both)?;
        if let Err(error) = routing.apply(&added) {
            write(&self.file, &self.saved)?;
            return Err(refused(error));
        }
        self.saved = both;
        routing.remove(&removed).map_err(RestoreError::Routes)?;
        self.saved.plan = plan;
        write(&self.file, &self.saved)
    }
}

/// The error for rules and routes that the kernel refuses.
fn refused(error: io::Error) -> RestoreError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => RestoreError::InUse,
        _ => RestoreError::Routes(error),
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let found = Found {
            file: std::mem::take(&mut self.file),
            saved: self.saved.clone(),
        };
        // What is left is removed by the next start, as the file then is.
        let _ = found.remove();
    }
}

impl Found {
    /// The tunnel of a device, running or killed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(device: &str) -> Result<Option<Self>, RestoreError> {
        let file = file_of(device);
        let failed = |cause| RestoreError::File {
            path: file.clone(),
            cause,
        };
        let bytes = match marline_http::read_regular_file(&file, MAX_FILE_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(failed)?,
        };
        match serde_json::from_slice(&bytes) {
            Ok(saved) => Ok(Some(Self { file, saved })),
            Err(cause) => Err(RestoreError::Damaged { path: file, cause }),
        }
    }

    /// The process of the client, if it runs.
    pub fn process(&self) -> Option<u32> {
        let process = self.saved.process;
        (began(process) == Some(self.saved.began)).then_some(process)
    }

    /// The address of `host`, if that is its server: while its rules are there, no name resolves.
    pub fn server(&self, host: &str) -> Option<IpAddr> {
        self.saved.server.filter(|_| self.saved.host == host)
    }

    /// The addresses that packets to the tunnel have, one by one.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let own = self.saved.plan.routes.iter().map(|route| route.to);
        own.filter(|to| *to == IpNet::from(to.addr()))
            .map(|to| to.addr())
    }

    /// The control group of `marline tunnel run`, if it has one.
    pub fn programs(&self) -> Option<&Path> {
        self.saved.programs.own()
    }

    /// Whether the sockets of all its programs are marked from now on.
    pub fn has_marks(&self) -> bool {
        self.saved.programs.are_marked()
    }

    /// Removes its rules, routes and marks, and the file.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn remove(self) -> Result<(), RestoreError> {
        let mut routing = Routing::open().map_err(RestoreError::Routes)?;
        routing
            .remove(&self.saved.plan)
            .map_err(RestoreError::Routes)?;
        self.saved.programs.unmark()?;
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RestoreError::File {
                path: self.file,
                cause: error,
            }),
            _ => Ok(()),
        }
    }
}

fn write(file: &Path, saved: &Saved) -> Result<(), RestoreError> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let write = || {
        fs::create_dir_all(directory)?;
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut new, saved)?;
        new.flush()?;
        new.persist(file)?;
        Ok(())
    };
    write().map_err(|cause| RestoreError::File {
        path: file.to_owned(),
        cause,
    })
}

/// When a process began, in clock ticks after the start of the machine (`proc_pid_stat(5)`).
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may have spaces; the field has number 22, and the first after the name 3.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_id_and_its_start() {
        let mut saved = Saved {
            device: "none".to_owned(),
            process: std::process::id(),
            began: began(std::process::id()).unwrap(),
            host: String::new(),
            server: None,
            plan: Plan::default(),
            programs: Programs::default(),
        };
        let process = |saved: &Saved| {
            let saved = saved.clone();
            let file = PathBuf::new();
            Found { file, saved }.process()
        };
        assert_eq!(process(&saved), Some(saved.process));
        saved.began += 1;
        assert_eq!(process(&saved), None);
    }
}
