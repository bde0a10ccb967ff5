//! The state of a simulation, and its advance to the next event.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use marline::Instant;
use marline_link::{Packet, Time};

use crate::config::SimConfig;
use crate::datagram::{Datagram, HEADER};
use crate::executor::Executor;
use crate::fabric::{Event, Fabric, Node};
use crate::sockets::Sockets;
use crate::stall::Stall;
use crate::statistics::Statistics;
use crate::timers::Timers;

/// The state shared by the hosts, their sockets and their timers.
pub(crate) struct Shared {
    pub(crate) config: SimConfig,
    pub(crate) executor: Arc<Executor>,
    now: AtomicU64,
    state: Mutex<State>,
}

/// The mutable state of a simulation, except the clock.
pub(crate) struct State {
    pub(crate) fabric: Fabric<Datagram>,
    pub(crate) timers: Timers,
    pub(crate) sockets: Sockets,
    pub(crate) statistics: Statistics,
    /// Number of seeds drawn, by node.
    pub(crate) seeds: Vec<u64>,
    /// Buffers of payloads for reuse.
    pub(crate) spare: Vec<Vec<u8>>,
}

impl Shared {
    /// The state at time 0, for the nodes of `fabric`.
    pub(crate) fn new(fabric: Fabric<Datagram>, config: SimConfig) -> Self {
        let nodes = fabric.nodes().count();
        Self {
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
        }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// A panicked task has poisoned the lock; the remaining state is only dropped and printed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock to the next event and handles all events at that time. Appends the tasks to wake to
    /// `woken`, because tasks must not be woken under the lock. Returns whether the clock moved.
    ///
    /// # Errors
    /// If there is no event, or none until `end`.
    pub(crate) fn advance(&self, end: Instant, woken: &mut Vec<Waker>) -> Result<bool, Stall> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let before = self.now();
        let now = state.next_event().ok_or(Stall::NoMoreEvents)?;
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

    /// Puts a packet that arrived into the buffer of its socket; returns the task that waits for it.
    fn deliver(
        &mut self,
        config: &SimConfig,
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

/// Inverts the bit that the link corrupted; returns false if the host drops the packet because of its checksum.
fn is_intact(config: &SimConfig, packet: &mut Packet<Datagram>) -> bool {
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
