//! Network namespaces without a name.
//!
//! A namespace exists as long as a file descriptor or a process refers to it. None is mounted under a name,
//! so none remains when this process ends.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use super::EmuError;

/// Acquires the capability to make network namespaces. Call it while the process has a single thread. It does
/// nothing for root, and enters a new user namespace for other users.
///
/// In that user namespace the process and its children have root's capabilities over what they create, and
/// the permissions of the user over everything else.
///
/// # Errors
/// [`EmuError::NoUserNamespace`] if the system does not allow it.
pub fn become_capable() -> Result<(), EmuError> {
    if Namespace::new().is_ok() {
        return Ok(());
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| EmuError::NoUserNamespace(error.into()))?;
    // An unprivileged process may map only its own user, and its group only after it has denied setgroups.
    for (file, map) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, map).map_err(EmuError::NoUserNamespace)?;
    }
    Ok(())
}

/// A network namespace, kept open by a file descriptor.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    inode: u64,
}

impl Namespace {
    /// Makes a namespace whose only device is a loopback device that is down.
    ///
    /// # Errors
    /// [`EmuError::NoPrivilege`] if this process may not make one.
    pub fn new() -> Result<Self, EmuError> {
        // The namespace of a thread is left only when the thread ends; hence a thread for this alone.
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
            _ => EmuError::system("making a network namespace")(error),
        })?;
        let inode = file
            .metadata()
            .map_err(EmuError::system("making a network namespace"))?
            .ino();
        Ok(Self { file, inode })
    }

    /// Its inode number, which identifies it in /proc.
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// Runs `work` on a thread inside the namespace. The sockets and programs that it creates stay in the
    /// namespace.
    ///
    /// # Errors
    /// The system refuses to start a thread, or to enter the namespace.
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
