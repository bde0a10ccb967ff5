//! A network, its clock, and the loop that runs its tasks.

use std::fmt;
use std::future::Future;
use std::io::{self, Write};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use marline::Instant;

use crate::capture::CaptureHandle;
use crate::config::SimConfig;
use crate::datagram::Datagram;
use crate::fabric::Fabric;
use crate::host::Host;
use crate::link::SimLink;
use crate::stall::{Stall, Stalled};
use crate::state::Shared;
use crate::statistics::Statistics;

/// Number of polls without progress of the clock after which a run counts as spinning.
const MAX_POLLS_AT_ONCE: u64 = 10_000_000;

/// A network in virtual time, and the tasks that run on its hosts.
///
/// Dropping it drops all tasks.
pub struct Sim {
    shared: Arc<Shared>,
    /// Polls of tasks, including the main future.
    polls: u64,
}

impl Sim {
    /// A simulation at time 0 with the hosts of `fabric`. [`SimBuilder`](crate::SimBuilder) is shorter for
    /// small networks.
    pub fn new(fabric: Fabric<Datagram>, config: SimConfig) -> Self {
        Self {
            shared: Arc::new(Shared::new(fabric, config)),
            polls: 0,
        }
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<Host> {
        self.hosts().into_iter().find(|host| host.name() == name)
    }

    /// All hosts, in the order of the plan.
    pub fn hosts(&self) -> Vec<Host> {
        let state = self.shared.lock();
        let fabric = &state.fabric;
        let hosts = fabric.nodes().filter(|&node| fabric.is_host(node));
        hosts
            .map(|node| {
                let all = fabric.addresses(node).iter();
                let own = all.filter_map(|ip| match ip {
                    IpAddr::V4(ip) => Some(*ip),
                    IpAddr::V6(_) => None,
                });
                Host::new(Arc::clone(&self.shared), node, fabric.name(node), own)
            })
            .collect()
    }

    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<SimLink> {
        let medium = self.shared.lock().fabric.find_medium(name)?;
        Some(SimLink::new(Arc::clone(&self.shared), medium))
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Counts since time 0.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            virtual_time: self.now() - Instant::EPOCH,
            polls: self.polls,
            ..self.shared.lock().statistics
        }
    }

    /// Reads the state of the network, taps it, or changes its faults.
    pub fn fabric<T>(&self, with: impl FnOnce(&mut Fabric<Datagram>) -> T) -> T {
        with(&mut self.shared.lock().fabric)
    }

    /// Writes all packets that leave a link from now on to `out`, in the format of
    /// [`fabric::pcap`](crate::fabric::pcap), with IPv4 and UDP headers.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn capture<W: Write + Send + 'static>(&self, out: W) -> io::Result<CaptureHandle<W>> {
        self.fabric(|fabric| CaptureHandle::begin(fabric, out))
    }

    /// Runs `future` and all tasks until `future` is ready, for at most `limit` of virtual time. Unfinished
    /// tasks continue in the next call.
    ///
    /// # Errors
    /// If `future` will never be ready, or not in time; see [`Stall`].
    pub fn run<F: Future>(&mut self, future: F, limit: Duration) -> Result<F::Output, Stalled> {
        let end = self.now() + limit;
        let main = Waker::from(self.shared.executor.main());
        let mut future = pin!(future);
        let mut woken = Vec::new();
        let mut still_since = self.polls;
        loop {
            while let Some(job) = self.shared.executor.next() {
                self.polls += 1;
                if self.polls - still_since > MAX_POLLS_AT_ONCE {
                    return Err(self.stalled(Stall::Spinning));
                }
                if !job.is_main() {
                    job.run();
                } else if let Poll::Ready(value) =
                    future.as_mut().poll(&mut Context::from_waker(&main))
                {
                    return Ok(value);
                }
            }
            match self.shared.advance(end, &mut woken) {
                Ok(true) => still_since = self.polls,
                Ok(false) => {}
                Err(stall) => return Err(self.stalled(stall)),
            }
            woken.drain(..).for_each(Waker::wake);
        }
    }

    fn stalled(&self, stall: Stall) -> Stalled {
        let state = self.shared.lock();
        let mut waiting = vec!["the run itself".to_owned()];
        let unfinished = self.shared.executor.unfinished();
        for node in state.fabric.nodes() {
            let name = state.fabric.name(node);
            match unfinished.iter().filter(|&&host| host == node).count() {
                0 => {}
                1 => waiting.push(format!("a task of {name}")),
                tasks => waiting.push(format!("{tasks} tasks of {name}")),
            }
        }
        let readers = state.sockets.readers();
        waiting.extend(readers.map(|reader| {
            let name = state.fabric.name(reader.host);
            format!("{name} for packets to {}", reader.local)
        }));
        Stalled {
            stall,
            at: self.now(),
            waiting,
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.shared.executor.close();
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
