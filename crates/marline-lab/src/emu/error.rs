//! Why real time is not to be had here, and what to do about it.

use std::io;

/// The emulator cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// The process may not make network namespaces.
    #[error(
        "network namespaces cannot be made ({0}): run as root, or within `unshare --map-root-user`"
    )]
    NoPrivilege(#[source] io::Error),
    /// Neither as this user nor in a user namespace of its own may the process make network namespaces.
    #[error(
        "user namespaces are not allowed here ({0}): run as root, or allow them with \
         `sysctl -w user.max_user_namespaces=10000` (on Ubuntu also \
         `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`)"
    )]
    NoUserNamespace(#[source] io::Error),
    /// The kernel has no TUN devices, or the container hides them.
    #[error(
        "there is no /dev/net/tun: load the module with `modprobe tun`, or give the container the \
         device"
    )]
    NoTun,
    /// The device is there, but not for this user.
    #[error("/dev/net/tun cannot be opened ({0}): run as root, or `chmod 666 /dev/net/tun`")]
    TunDenied(#[source] io::Error),
    /// A program that the work needs is not installed.
    #[error("{program} is not installed, which is needed {purpose}: install the package {package}")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// What for.
        purpose: &'static str,
        /// Where it comes from.
        package: &'static str,
    },
    /// A tool of the system failed.
    #[error("`{tool}` failed ({message}): is {package} installed?")]
    Tool {
        /// Its name.
        tool: &'static str,
        /// What it said.
        message: String,
        /// Where it comes from.
        package: &'static str,
    },
    /// Anything else the system says no to.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl EmuError {
    /// Whether this machine or user lacks something, rather than something having failed: the work can
    /// be skipped, not repaired.
    pub fn is_missing_privilege(&self) -> bool {
        matches!(
            self,
            Self::NoPrivilege(_)
                | Self::NoUserNamespace(_)
                | Self::NoTun
                | Self::TunDenied(_)
                | Self::NoProgram { .. }
        )
    }

    /// A closure for `map_err`.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}
