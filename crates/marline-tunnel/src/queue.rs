//! Packets that wait to be sent as datagrams: FQ-CoDel (RFC 8290), so that a download does not delay a call.

use std::collections::VecDeque;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline_link::Packet;
use marline_link::Time;
use marline_link::queue::{FqCodel, FqCodelConfig, Queue};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::counters::{Counters, Dropped};
use crate::packet::{Header, mark_congestion};

/// Packets that wait, at most: 60 ms at 100 Mbit/s. CoDel keeps far fewer.
const MAX_PACKETS: usize = 512;

/// Queues into which flows are hashed.
const FLOWS: usize = 256;

/// An IP packet, with room for the context ID of its datagram before it.
#[derive(Debug)]
pub(crate) struct Contained {
    /// The context ID 0, which takes one byte, and the packet (RFC 9484, section 6).
    bytes: Vec<u8>,
}

impl Contained {
    /// The payload of a datagram, of one byte at least.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The payload of the datagram.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes
    }

    /// The packet.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.bytes[1..]
    }
}

/// The queue before the datagrams of one tunnel.
pub(crate) struct PacketQueue {
    state: Mutex<State>,
    arrived: Notify,
    flows: RandomState,
    epoch: Instant,
    counters: Arc<Counters>,
}

struct State {
    waiting: FqCodel<Contained>,
    dropped: VecDeque<marline_link::Exit<Contained>>,
}

impl PacketQueue {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        let config = FqCodelConfig {
            queues: FLOWS,
            packets: MAX_PACKETS,
            ..FqCodelConfig::default()
        };
        Self {
            state: Mutex::new(State {
                waiting: FqCodel::new(config),
                dropped: VecDeque::new(),
            }),
            arrived: Notify::new(),
            flows: RandomState::new(),
            epoch: Instant::now(),
            counters,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::ZERO + self.epoch.elapsed()
    }

    /// A packet with this header is to be sent.
    pub(crate) fn push(&self, header: &Header, packet: Contained) {
        let packet = Packet {
            flow: header.flow(&self.flows),
            ecn: header.ecn,
            ..Packet::new(packet.packet().len() as u32, packet)
        };
        let mut state = self.lock();
        let State { waiting, dropped } = &mut *state;
        waiting.enqueue(self.now(), packet, dropped);
        self.count(&mut state);
        drop(state);
        self.arrived.notify_one();
    }

    /// The next packet.
    pub(crate) async fn pop(&self) -> Contained {
        loop {
            if let Some(packet) = self.try_pop() {
                return packet;
            }
            self.arrived.notified().await;
        }
    }

    fn try_pop(&self) -> Option<Contained> {
        let mut state = self.lock();
        let State { waiting, dropped } = &mut *state;
        let packet = waiting.dequeue(self.now(), dropped);
        self.count(&mut state);
        let Packet { ecn, mut body, .. } = packet?;
        if ecn == marline_link::Ecn::Ce {
            mark_congestion(&mut body.bytes[1..]);
        }
        Some(body)
    }

    fn count(&self, state: &mut State) {
        for _ in state.dropped.drain(..) {
            self.counters.on_dropped(Dropped::Queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::packet::tests::udp;

    fn push(queue: &PacketQueue, source: &str, payload: usize) {
        let packet = udp(source, "192.0.2.1", payload);
        let header = Header::parse(&packet).unwrap();
        queue.push(&header, Contained::new([&[0], &packet[..]].concat()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flow_with_little_does_not_wait_for_one_with_much() {
        let queue = PacketQueue::new(Arc::default());
        for _ in 0..100 {
            push(&queue, "10.0.0.2", 1400);
        }
        push(&queue, "10.0.0.3", 100);
        let mut position = 0;
        while queue.pop().await.packet().len() > 200 {
            position += 1;
        }
        assert!(position <= 2, "{position}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_packets_is_limited() {
        let counters = Arc::<Counters>::default();
        let queue = PacketQueue::new(Arc::clone(&counters));
        for _ in 0..MAX_PACKETS + 100 {
            push(&queue, "10.0.0.2", 1400);
        }
        assert_eq!(queue.lock().waiting.len(), MAX_PACKETS);
        assert_eq!(counters.dropped(Dropped::Queue), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_standing_queue_is_shortened() {
        let counters = Arc::<Counters>::default();
        let queue = PacketQueue::new(Arc::clone(&counters));
        // Two arrive for each that leaves.
        for _ in 0..600 {
            push(&queue, "10.0.0.2", 1400);
            push(&queue, "10.0.0.2", 1400);
            queue.pop().await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(counters.dropped(Dropped::Queue) > 10);
    }
}
