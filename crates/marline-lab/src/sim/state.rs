//! What is true of a world at a moment, and how the next moment comes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use marline::Instant;
use marline_link::{Packet, Time};

use super::config::WorldConfig;
use super::datagram::{Datagram, HEADER};
use super::executor::Executor;
use super::sockets::Sockets;
use super::stall::Stall;
use super::statistics::Statistics;
use super::timers::Timers;
use crate::fabric::{Event, Fabric, Node};

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

impl Shared {
    /// At the beginning of time, for the nodes of `fabric`.
    pub(super) fn new(fabric: Fabric<Datagram>, config: WorldConfig) -> Self {
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

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// After a panic only the remains are looked at.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock to when something happens, lets it happen, and says whom to wake, which must
    /// not be done under the lock. True if the clock moved.
    pub(super) fn advance(&self, end: Instant, woken: &mut Vec<Waker>) -> Result<bool, Stall> {
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
