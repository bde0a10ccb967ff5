//! Connections of several paths.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::proto::OpenPathError::NoConnectionIds;
use marline::{Connection, Instant, OpenPathError, Runtime};

use super::memory::{Memory, OutOfOrder};
use super::{PORT, PathEnds, Testbed, failed, sleep};
use crate::scenario::{Direction, Job, RunError};

/// The address of sockets whose connections may have several paths.
pub(super) const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The interval of attempts while connection IDs of the server are missing.
const WAIT: Duration = Duration::from_millis(10);
const WAITS: usize = 500;

/// Opens all other paths than the one on which `connection` began, if it may have several, and waits until
/// they are validated.
pub(super) async fn open_all(
    job: &Job,
    testbed: &Testbed,
    runtime: &dyn Runtime,
    connection: &Connection,
) -> Result<(), RunError> {
    if !job.settings.is_multipath() {
        return Ok(());
    }
    for (place, path) in testbed.paths.iter().enumerate() {
        if place != testbed.first {
            open(connection, *path, runtime).await?;
        }
    }
    Ok(())
}

async fn open(
    connection: &Connection,
    path: PathEnds,
    runtime: &dyn Runtime,
) -> Result<(), RunError> {
    let remote = SocketAddr::new(path.server, PORT);
    for _ in 0..WAITS {
        match connection.open_path(path.client, Some(remote)).await {
            Err(OpenPathError::Refused(NoConnectionIds)) => sleep(runtime, WAIT).await,
            opened => return opened.map(drop).map_err(failed),
        }
    }
    Err(failed("the server gave no connection IDs for a path"))
}

/// Has `connection` open its paths in the background.
pub(super) fn open_meanwhile(
    job: &Job,
    testbed: &Testbed,
    runtime: &Arc<dyn Runtime>,
    connection: &Connection,
) {
    let (job, testbed, connection) = (job.clone(), testbed.clone(), connection.clone());
    let clock = Arc::clone(runtime);
    runtime.spawn(Box::pin(async move {
        // A path that fails shows in the metrics of the bytes on each path.
        let _ = open_all(&job, &testbed, &*clock, &connection).await;
    }));
}

/// The bytes on each of several paths: `path_N_bytes`, and their share of all bytes
/// `path_N_percent`.
pub(super) fn add_metrics(
    testbed: &Testbed,
    connection: &Connection,
    direction: Direction,
    metrics: &mut BTreeMap<String, f64>,
) {
    if testbed.paths.len() < 2 {
        return;
    }
    let carried = connection.paths();
    let bytes = |ends: &PathEnds| {
        let mine = carried.iter().filter(|path| {
            let here = path.local.map(|local| local.ip());
            here == Some(ends.client) && path.remote.ip() == ends.server
        });
        let udp = mine.map(|path| match direction {
            Direction::Down => path.udp_received.bytes,
            Direction::Up => path.udp_sent.bytes,
        });
        udp.sum::<u64>() as f64
    };
    let all: f64 = testbed.paths.iter().map(bytes).sum();
    for (number, ends) in (1..).zip(&testbed.paths) {
        let bytes = bytes(ends);
        metrics.insert(format!("path_{number}_bytes"), bytes);
        metrics.insert(
            format!("path_{number}_percent"),
            100.0 * bytes / all.max(1.0),
        );
    }
}

/// The measurement of a receiver.
pub(super) struct Reception<'a> {
    pub(super) pauses: &'a Pauses,
    pub(super) memory: &'a Memory,
    /// When it ended.
    pub(super) end: Instant,
    /// Its duration, in seconds.
    pub(super) seconds: f64,
}

/// Metrics of the receiver: `longest_pause_s`, in which no bytes arrived, and `out_of_order_mean_bytes` and
/// `out_of_order_max_bytes`, which it buffered because earlier ones were missing.
pub(super) fn add_receiver(
    testbed: &Testbed,
    reception: &Reception<'_>,
    metrics: &mut BTreeMap<String, f64>,
) {
    if testbed.paths.len() < 2 {
        return;
    }
    let Reception {
        pauses,
        memory,
        end,
        seconds,
    } = *reception;
    let OutOfOrder { mean, max } = memory.end(end, seconds);
    for (name, value) in [
        ("longest_pause_s", pauses.longest_s()),
        ("out_of_order_mean_bytes", mean),
        ("out_of_order_max_bytes", max),
    ] {
        metrics.insert(name.to_owned(), value);
    }
}

/// The times in which no stream received data.
#[derive(Clone, Debug)]
pub(super) struct Pauses(Arc<Mutex<(Instant, Duration)>>);

impl Pauses {
    pub(super) fn since(start: Instant) -> Self {
        Self(Arc::new(Mutex::new((start, Duration::ZERO))))
    }

    /// Data was received.
    pub(super) fn end(&self, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, longest) = *known;
        *known = (now, longest.max(now.saturating_since(last)));
    }

    /// The longest so far, in seconds.
    pub(super) fn longest_s(&self) -> f64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.as_secs_f64()
    }
}
