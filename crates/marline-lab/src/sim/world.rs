//! The clock, and what happens when.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use marline::Instant;

use super::config::WorldConfig;
use super::datagram::Datagram;
use super::host::Host;
use super::stall::{Stall, Stalled};
use super::state::Shared;
use super::statistics::Statistics;
use crate::fabric::Fabric;

/// Tasks that run one after the other while the clock stands still, before that counts as spinning.
const MAX_POLLS_AT_ONCE: u64 = 10_000_000;

/// A network in virtual time, and all that runs on its hosts.
///
/// Dropping it drops all tasks.
pub struct World {
    shared: Arc<Shared>,
    /// How often a task ran.
    polls: u64,
}

impl World {
    /// A world at the beginning of its time, whose hosts are those of `fabric`.
    pub fn new(fabric: Fabric<Datagram>, config: WorldConfig) -> Self {
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

    /// What the clock says.
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// What was seen since the world began.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            virtual_time: self.now() - Instant::EPOCH,
            polls: self.polls,
            ..self.shared.lock().statistics
        }
    }

    /// Looks at the network, or taps it.
    pub fn fabric<T>(&self, look: impl FnOnce(&mut Fabric<Datagram>) -> T) -> T {
        look(&mut self.shared.lock().fabric)
    }

    /// Runs `future` and all tasks until `future` is ready, for `limit` of virtual time at most. The
    /// tasks that are left rest until the next call.
    ///
    /// # Errors
    /// `future` will never be ready, or not in time; see [`Stall`].
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
        waiting.extend(readers.map(|(node, local)| {
            let name = state.fabric.name(node);
            format!("{name} for packets to {local}")
        }));
        Stalled {
            stall,
            at: self.now(),
            waiting,
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shared.executor.close();
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
