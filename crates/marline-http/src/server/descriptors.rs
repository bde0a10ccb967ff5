//! The number of files and connections that the system lets a server open.

use super::ServerLimits;
use crate::limits;

/// Raises the limit of open files of this process to its maximum. To be called once, before the server is bound. Does
/// nothing on systems without such a limit.
///
/// The default of most systems is 1024, of which every connection over TCP and every file that is being sent takes one.
pub fn raise_open_file_limit() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Without permission, the server makes do with what it has.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// The limit of open files of this process; `None` if there is none.
fn open_file_limit() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(target_os = "linux"))]
    None
}

/// The descriptors of each kind that a server may open, so that accepting connections does not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// Files that responses hold open.
    pub(super) files: u64,
    /// Connections over TCP.
    pub(super) connections: usize,
    /// qlog files, which SIGHUP may enable.
    pub(super) qlog: usize,
}

impl Descriptors {
    /// Divides the system's limit.
    pub(super) fn of_process(limits: &ServerLimits, workers: usize) -> Self {
        Self::of(open_file_limit(), limits, workers)
    }

    /// Divides `limit`: some are set aside, a quarter of the rest is for files, an eighth at most for qlog files.
    fn of(limit: Option<u64>, wanted: &ServerLimits, workers: usize) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        let of_workers = limits::FILES_OF_WORKER * (workers.max(1) as u64 - 1);
        let reserved = limits::RESERVED_FILES + of_workers;
        let rest = limit - reserved.min(limit / 2);
        let files = (rest / 4).min(wanted.max_open_files as u64).max(1);
        let qlog = (rest / 8).min(wanted.qlog.open_files as u64);
        let connections = usize::try_from(rest - rest / 4 - qlog).unwrap_or(usize::MAX);
        Self {
            files,
            connections: connections.min(wanted.max_connections),
            // No more than the limit, which is an usize.
            qlog: usize::try_from(qlog).unwrap_or(usize::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_connections_fit_into_what_the_system_allows() {
        let mut limits = ServerLimits::default();
        for limit in [16, 64, 256, 1024, 4096, 1 << 20] {
            let Descriptors {
                files,
                connections,
                qlog,
            } = Descriptors::of(Some(limit), &limits, 4);
            assert!(files > 0 && connections > 0 && qlog > 0, "{limit}");
            assert!(files + ((connections + qlog) as u64) < limit, "{limit}");
        }
        (limits.max_open_files, limits.max_connections) = (100, 200);
        limits.qlog.open_files = 300;
        let enough = Descriptors::of(None, &limits, 255);
        let expected = Descriptors {
            files: 100,
            connections: 200,
            qlog: 300,
        };
        assert_eq!(enough, expected);
    }
}
