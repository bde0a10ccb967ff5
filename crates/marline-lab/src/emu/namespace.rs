//! Network namespaces without a name.
//!
//! A namespace lives as long as a file descriptor or a process holds it. Nothing is ever mounted under
//! a name, so nothing is left over, however this process ends.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use super::EmuError;

/// Makes this process one that may make network namespaces, and must be called before it has a second
/// thread: does nothing for root, and enters a user namespace of its own for others.
///
/// In that user namespace the process and its children are root over what they make themselves, and
/// the same user as before towards everything else.
///
/// # Errors
/// [`EmuError::NoUserNamespace`] if the system does not allow it.
pub fn become_capable() -> Result<(), EmuError> {
    if Namespace::new().is_ok() {
        return Ok(());
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| EmuError::NoUserNamespace(error.into()))?;
    // Whoever is not root may map only itself, and its groups only after giving up setgroups.
    for (file, map) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, map).map_err(EmuError::NoUserNamespace)?;
    }
    Ok(())
}

/// A network namespace, held open.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    inode: u64,
}

impl Namespace {
    /// A new one, with nothing but a loopback device that is down.
    ///
    /// # Errors
    /// [`EmuError::NoPrivilege`] if this process may not.
    pub fn new() -> Result<Self, EmuError> {
        // A thread can only leave its namespace by ending; so a thread is made to be thrown away.
        let made = thread::scope(|scope| {
            let maker = || {
                unshare(CloneFlags::CLONE_NEWNET)?;
                File::open("/proc/thread-self/ns/net")
            };
            thread::Builder::new()
                .name("namespace".to_owned())
                .spawn_scoped(scope, maker)?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let file = made.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPERM) => EmuError::NoPrivilege(error),
            _ => EmuError::system("a network namespace")(error),
        })?;
        let inode = file
            .metadata()
            .map_err(EmuError::system("a network namespace"))?
            .ino();
        Ok(Self { file, inode })
    }

    /// Its number, by which /proc names it.
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// Runs `work` on a thread inside the namespace: sockets it makes and programs it starts belong
    /// there, and stay there when `work` is over.
    ///
    /// # Errors
    /// The system refuses a thread, or entering.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = || {
                setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)?;
                Ok(work())
            };
            thread::Builder::new()
                .name("inside".to_owned())
                .spawn_scoped(scope, inside)?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
