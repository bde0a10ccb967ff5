//! The clock, and what happens when.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use marline::Instant;
use marline_link::{Packet, Seed, Time};

use super::datagram::{Datagram, HEADER};
use super::executor::Executor;
use super::host::Host;
use super::socket::Sockets;
use super::statistics::Statistics;
use super::timers::Timers;
use crate::fabric::{EcmpHash, Event, Fabric, Node};

/// Tasks that run one after the other while the clock stands still, before that counts as spinning.
const MAX_POLLS_AT_ONCE: u64 = 10_000_000;

/// 2023-11-14 22:13:20 UTC.
const BEGINNING: Duration = Duration::from_secs(1_700_000_000);

/// A network in virtual time, and all that runs on its hosts.
///
/// Dropping it drops all tasks.
pub struct World {
    shared: Arc<Shared>,
    /// How often a task ran.
    polls: u64,
}

/// What can be chosen of a world.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Where the seeds of the hosts come from. Links bring their own.
    pub seed: Seed,
    /// How flows are told apart.
    pub flow_hash: EcmpHash,
    /// Bytes of payload that wait at a socket; what comes beyond is dropped.
    pub receive_buffer: usize,
    /// Bytes of the largest IP packet that hosts send.
    pub mtu: usize,
    /// Most datagrams that a socket takes at once.
    pub max_gso_segments: usize,
    /// Whether hosts drop corrupted packets, as the checksum of UDP makes them. If not, payloads
    /// arrive with a bit flipped; a packet with a flip in its header is dropped in any case.
    pub checksums: bool,
    /// The date when the clock is at 0.
    pub beginning: Duration,
}

impl WorldConfig {
    /// All defaults, but for the seed.
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            flow_hash: EcmpHash::default(),
            receive_buffer: 1 << 20,
            mtu: 1500,
            max_gso_segments: 64,
            checksums: true,
            beginning: BEGINNING,
        }
    }
}

/// A run that will not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stall} at {:?}; waiting: {}", .at.saturating_since(Instant::EPOCH), .waiting.join(", "))]
pub struct Stalled {
    /// Why it will not end.
    pub stall: Stall,
    /// When that was noticed.
    pub at: Instant,
    /// Who waits, in words.
    pub waiting: Vec<String>,
}

/// Why a run will not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// No packet is under way and no timer is set.
    NothingCanHappen,
    /// It is not done in the time it was given.
    TimeLimit,
    /// Tasks wake each other, and the clock stands still.
    Spinning,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingCanHappen => "nothing can ever happen again",
            Self::TimeLimit => "the time limit is reached",
            Self::Spinning => "tasks wake each other without end",
        })
    }
}

/// What the hosts, their sockets and their timers share.
pub(super) struct Shared {
    pub(super) config: WorldConfig,
    pub(super) executor: Arc<Executor>,
    now: AtomicU64,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) fabric: Fabric<Datagram>,
    pub(super) timers: Timers,
    pub(super) sockets: Sockets,
    pub(super) statistics: Statistics,
    /// By node: how many seeds it was given.
    pub(super) seeds: Vec<u64>,
    /// Payloads to be used again.
    pub(super) spare: Vec<Vec<u8>>,
}

impl World {
    /// A world at the beginning of its time, whose hosts are those of `fabric`.
    pub fn new(fabric: Fabric<Datagram>, config: WorldConfig) -> Self {
        let nodes = fabric.nodes().count();
        Self {
            shared: Arc::new(Shared {
                executor: Arc::default(),
                now: AtomicU64::new(0),
                state: Mutex::new(State {
                    fabric,
                    timers: Timers::default(),
                    sockets: Sockets::new(nodes),
                    statistics: Statistics::default(),
                    seeds: vec![0; nodes],
                    spare: Vec::new(),
                }),
                config,
            }),
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

impl Shared {
    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// After a panic only the remains are looked at.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock to when something happens, lets it happen, and says whom to wake, which must
    /// not be done under the lock. True if the clock moved.
    fn advance(&self, end: Instant, woken: &mut Vec<Waker>) -> Result<bool, Stall> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let before = self.now();
        let now = state.next_event().ok_or(Stall::NothingCanHappen)?;
        let now = now.max(before);
        if now > end {
            return Err(Stall::TimeLimit);
        }
        self.now.store(now.as_nanos(), Ordering::Relaxed);
        while let Some(event) = state.fabric.poll(Time::from_nanos(now.as_nanos())) {
            match event {
                Event::Arrived { node, packet, .. } => {
                    woken.extend(state.deliver(&self.config, node, packet));
                }
                Event::Dropped { packet, .. } => {
                    state.statistics.packets_lost += 1;
                    state.spare.push(packet.body.payload);
                }
            }
        }
        woken.extend(std::iter::from_fn(|| state.timers.pop(now)));
        Ok(now > before)
    }
}

impl State {
    fn next_event(&self) -> Option<Instant> {
        let packets = self.fabric.next_event();
        let packets = packets.map(|at| Instant::from_nanos(at.as_nanos()));
        [packets, self.timers.next()].into_iter().flatten().min()
    }

    /// Puts a packet that arrived in the buffer of its socket; returns who waited for it.
    fn deliver(
        &mut self,
        config: &WorldConfig,
        host: Node,
        mut packet: Packet<Datagram>,
    ) -> Option<Waker> {
        if !is_intact(config, &mut packet) {
            self.statistics.checksum_failures += 1;
            self.spare.push(packet.body.payload);
            return None;
        }
        let Some(socket) = self.sockets.find(host, packet.body.destination) else {
            self.statistics.no_socket += 1;
            self.spare.push(packet.body.payload);
            return None;
        };
        match socket.deliver(packet, config.receive_buffer) {
            Ok(reader) => {
                self.statistics.packets_delivered += 1;
                reader
            }
            Err(packet) => {
                self.statistics.buffer_full += 1;
                self.spare.push(packet.body.payload);
                None
            }
        }
    }
}

/// Flips the bit that the network flipped; false if the host notices.
fn is_intact(config: &WorldConfig, packet: &mut Packet<Datagram>) -> bool {
    let Some(bit) = packet.corrupted else {
        return true;
    };
    let payload = &mut packet.body.payload;
    let bits = (HEADER + payload.len()) as u64 * 8;
    let bit = (bit % bits) as usize;
    let byte = (bit / 8).checked_sub(HEADER);
    match byte.and_then(|byte| payload.get_mut(byte)) {
        Some(byte) if !config.checksums => {
            *byte ^= 1 << (bit % 8);
            true
        }
        _ => false,
    }
}
