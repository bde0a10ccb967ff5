//! Errors of the emulator, with what to do about them.

use std::io;

/// Why the emulator cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// The process may not make network namespaces.
    #[error(
        "network namespaces cannot be made ({0}): run as root, or within `unshare --map-root-user`"
    )]
    NoPrivilege(#[source] io::Error),
    /// The process may make network namespaces neither as this user nor in a user namespace of its own.
    #[error(
        "user namespaces are not allowed here ({0}): run as root, or allow them with \
         `sysctl -w user.max_user_namespaces=10000` (on Ubuntu also \
         `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`)"
    )]
    NoUserNamespace(#[source] io::Error),
    /// The kernel has no TUN devices, or the container does not expose them.
    #[error(
        "there is no /dev/net/tun: load the module with `modprobe tun`, or give the container the \
         device"
    )]
    NoTun,
    /// This user may not open the TUN device.
    #[error("/dev/net/tun cannot be opened ({0}): run as root, or `chmod 666 /dev/net/tun`")]
    TunDenied(#[source] io::Error),
    /// A required program is not installed.
    #[error("{program} is not installed, which is needed {purpose}: install the package {package}")]
    NoProgram {
        /// The name of the program.
        program: &'static str,
        /// The purpose of the program.
        purpose: &'static str,
        /// The package that contains it.
        package: &'static str,
    },
    /// A tool of the system failed.
    #[error("`{tool}` failed ({message}): is {package} installed?")]
    Tool {
        /// Its name.
        tool: &'static str,
        /// The tool's error message.
        message: String,
        /// The package that contains it.
        package: &'static str,
    },
    /// Any other system call failed.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl EmuError {
    /// Whether this machine or user lacks something that the work needs, so that tests skip the work instead
    /// of failing.
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

    /// Returns a closure for `map_err`: the operation `what` failed.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}
