//! The TCP of a host's kernel, in backends that have one.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline::congestion::Algorithm;
use marline::{Instant, Runtime};
use marline_http::tcp::TcpSockets;
use tokio::process::Child;

use super::{failed, sleep};
use crate::scenario::{EndpointSettings, RunError, TcpController};

/// The interval at which windows are sampled.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(50);

/// The kernel of a host.
pub trait Kernel: fmt::Debug + Send + Sync + 'static {
    /// The factory of the host's TCP sockets.
    fn sockets(&self, controller: TcpController) -> Arc<dyn TcpSockets>;

    /// Makes `controller` that of TCP connections of programs on the host.
    ///
    /// # Errors
    /// The kernel has no such controller, or does not allow it.
    fn use_controller(&self, controller: TcpController) -> io::Result<()>;

    /// Whether a program on the host listens at `port`: for TCP, or for UDP.
    ///
    /// # Errors
    /// Sockets cannot be listed.
    fn listens(&self, tcp: bool, port: u16) -> io::Result<bool>;

    /// Allows connections of Multipath TCP to have a second subflow between the same two addresses: to `announced` of this
    /// host, or to what the other host announces.
    ///
    /// # Errors
    /// The kernel has no Multipath TCP, or a tool is missing.
    fn allow_second_subflow(&self, announced: Option<SocketAddr>) -> io::Result<()>;

    /// The counters of TCP and of Multipath TCP, as `nstat` names them.
    ///
    /// # Errors
    /// They cannot be read.
    fn counters(&self) -> io::Result<BTreeMap<String, u64>>;

    /// A listing of the connections, and subflows of Multipath TCP, that the host accepts at one of `ports`.
    ///
    /// # Errors
    /// The kernel does not allow it.
    fn accepted(&self, ports: &[u16]) -> io::Result<Box<dyn AcceptedConnections>>;

    /// Starts a program on the host, in a process group of its own: an interrupt from the terminal does not reach it. Call it
    /// within a tokio runtime.
    ///
    /// # Errors
    /// It does not start.
    fn spawn(&self, command: Command) -> io::Result<Child>;
}

/// The TCP connections that a host has accepted.
pub trait AcceptedConnections: Send {
    /// The connections that are established now.
    ///
    /// # Errors
    /// They cannot be listed.
    fn list(&mut self) -> io::Result<Vec<TcpState>>;
}

/// The state of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpState {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The congestion window, in bytes.
    pub window: u64,
}

/// The kernel's TCP controller of the kind in `settings`.
pub(super) fn controller(settings: &EndpointSettings) -> Result<TcpController, RunError> {
    let config = settings.transport();
    let cc = config.controller.spec().name();
    let of_kernel = TcpController::NAMES
        .into_iter()
        .find(|(name, controller)| *name == cc || controller.stand_in() == cc);
    of_kernel.map(|(_, controller)| controller).ok_or_else(|| {
        let known = [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr].map(|one| one.name());
        RunError::Unsupported(format!(
            "the kernel's TCP has no controller {cc}; set cc to one of {}",
            known.join(", ")
        ))
    })
}

/// Samples the windows of a server's TCP connections.
#[derive(Clone, Debug)]
pub(super) struct WindowSamples {
    start: Instant,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    samples: Vec<Sample>,
    /// The error that ended sampling.
    failed: Option<io::Error>,
}

#[derive(Clone, Debug)]
struct Sample {
    at_s: f64,
    states: Vec<TcpState>,
}

impl WindowSamples {
    /// Takes samples from now on for as long as the run lasts.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub(super) fn start(
        kernel: &dyn Kernel,
        runtime: &Arc<dyn Runtime>,
        ports: &[u16],
    ) -> io::Result<Self> {
        let samples = Self {
            start: runtime.now(),
            taken: Arc::default(),
        };
        let mut connections = kernel.accepted(ports)?;
        let (this, clock) = (samples.clone(), Arc::clone(runtime));
        runtime.spawn(Box::pin(async move {
            loop {
                let states = match connections.list() {
                    Ok(states) => states,
                    Err(error) => {
                        this.lock().failed = Some(error);
                        return;
                    }
                };
                let at_s = clock.now().saturating_since(this.start).as_secs_f64();
                this.lock().samples.push(Sample { at_s, states });
                sleep(&*clock, SAMPLING_INTERVAL).await;
            }
        }));
        Ok(samples)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Series of each connection's window in the order in which they were first seen.
    ///
    /// # Errors
    /// A sample could not be taken.
    pub(super) fn series(&self) -> io::Result<Vec<Vec<(f64, f64)>>> {
        let mut series: Vec<(SocketAddr, Vec<(f64, f64)>)> = Vec::new();
        let mut taken = self.lock();
        if let Some(error) = taken.failed.take() {
            return Err(error);
        }
        for sample in &taken.samples {
            for state in &sample.states {
                let point = (sample.at_s, state.window as f64);
                match series.iter_mut().find(|(peer, _)| *peer == state.peer) {
                    Some((_, points)) => points.push(point),
                    None => series.push((state.peer, vec![point])),
                }
            }
        }
        Ok(series.into_iter().map(|(_, points)| points).collect())
    }
}

/// A series that is the sum of several, each of which keeps its value until the next.
pub(super) fn sum(series: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for points in series {
        let mut before = 0.0;
        for &(at, value) in points {
            changes.push((at, value - before));
            before = value;
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut total = 0.0;
    let mut sum: Vec<(f64, f64)> = Vec::new();
    for (at, change) in changes {
        total += change;
        match sum.last_mut() {
            Some(last) if last.0 == at => last.1 = total,
            _ => sum.push((at, total)),
        }
    }
    sum
}

/// The mean over time of a series from its first value until `end_s`.
pub(super) fn mean(series: &[(f64, f64)], end_s: f64) -> Option<f64> {
    let begin = series.first()?.0.max(0.0);
    let ends = series.iter().skip(1).map(|point| point.0).chain([end_s]);
    let area = series
        .iter()
        .zip(ends)
        .map(|(&(at, value), next)| (next.min(end_s) - at.max(0.0)).max(0.0) * value);
    let area: f64 = area.sum();
    (end_s > begin).then(|| area / (end_s - begin))
}

/// The address that the server announces for second subflows: their data connection has another port.
pub(super) fn announced(server: SocketAddr) -> SocketAddr {
    SocketAddr::new(server.ip(), server.port() + 1)
}

/// Metrics from the kernel's counters.
pub(super) fn multipath_metrics(kernel: &dyn Kernel) -> Result<[(&'static str, f64); 2], RunError> {
    let counters = kernel.counters().map_err(failed)?;
    let count = |name: &str| counters.get(name).copied().unwrap_or(0) as f64;
    Ok([
        ("mptcp_connections", count("MPTcpExtMPCapableACKRX")),
        ("mptcp_joins", count("MPTcpExtMPJoinAckRx")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_series_keeps_their_last_values() {
        let series = [
            vec![(0.0, 10.0), (2.0, 20.0)],
            vec![(1.0, 5.0), (2.0, 6.0), (3.0, 0.0)],
        ];
        let expected = [(0.0, 10.0), (1.0, 15.0), (2.0, 26.0), (3.0, 20.0)];
        assert_eq!(sum(&series), expected);
        assert_eq!(sum(&[]), []);
    }

    #[test]
    fn the_mean_is_weighted_by_time() {
        let series = [(0.0, 10.0), (1.0, 20.0), (3.0, 100.0)];
        assert_eq!(mean(&series, 2.0), Some(15.0));
        assert_eq!(mean(&series, 4.0), Some((10.0 + 40.0 + 100.0) / 4.0));
        assert_eq!(mean(&[(-1.0, 4.0)], 2.0), Some(4.0));
        assert_eq!(mean(&series, 0.0), None);
        assert_eq!(mean(&[], 1.0), None);
    }
}
