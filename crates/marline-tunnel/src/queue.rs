//! Packets that wait to be sent as datagrams: FQ-CoDel (RFC 8290) for each path, so that a download does not delay a call.

use std::collections::VecDeque;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use marline::{DatagramPath, PathId, PathStatus};
use marline_link::queue::{FqCodel, FqCodelConfig, Queue};
use marline_link::{DropReason, Exit, Packet, Time};
use tokio::time::Instant;

use crate::copies::{self, Copied};
use crate::counters::{Counters, Dropped};
use crate::flows::{Arrived, Candidate, Choice, FlowTable};
use crate::packet::{Header, mark_congestion};

/// Packets that wait for a path, at most: 60 ms at 100 Mbit/s. CoDel keeps far fewer.
const MAX_PACKETS: usize = 512;

/// Queues into which flows are hashed.
const FLOWS: usize = 256;

/// Packets of a flow that pauses.
const MAX_HELD: usize = 256;

/// The packets that are sent on two paths.
#[derive(Clone, Copy, Debug)]
struct Copies {
    copied: Copied,
    /// The number of the next one.
    next: u32,
}

/// The paths are asked for after so long.
const UPDATE_INTERVAL: Duration = Duration::from_millis(1);

/// The delay of a path that has no measurement.
const UNKNOWN_DELAY: Duration = Duration::from_secs(1);

/// An IP packet as the payload of a datagram.
#[derive(Clone, Debug)]
pub(crate) struct Contained {
    /// The context ID 0, which takes one byte, and the packet (RFC 9484, section 6); or another context.
    bytes: Vec<u8>,
    /// Where the packet begins.
    packet_at: usize,
    /// Whether the packet is sent on another path as well.
    is_copy: bool,
}

impl Contained {
    /// The payload of a datagram, of one byte at least.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            packet_at: 1,
            is_copy: false,
        }
    }

    /// The packet with a number, by which the receiver finds copies.
    fn numbered(&self, number: u32) -> Self {
        Self {
            bytes: copies::encode(number, self.packet()),
            packet_at: copies::OVERHEAD,
            is_copy: false,
        }
    }

    /// A datagram of this size without a packet, which its receiver drops.
    fn filler(size: u32) -> Self {
        let mut bytes = vec![0; 1 + size as usize];
        bytes[0] = copies::FILLER;
        Self {
            bytes,
            packet_at: 1,
            is_copy: true,
        }
    }

    fn copied(&self) -> Self {
        Self {
            is_copy: true,
            ..self.clone()
        }
    }

    /// The payload of the datagram.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes
    }

    /// The packet.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.bytes[self.packet_at..]
    }

    /// Whether the packet is sent on another path as well, and counted there; or there is none.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }
}

impl From<&[u8]> for Contained {
    fn from(packet: &[u8]) -> Self {
        Self::new([&[0], packet].concat())
    }
}

/// A packet in a queue.
pub(crate) type Waiting = Packet<Contained>;

/// The queues before the datagrams of one tunnel: one for each path.
pub(crate) struct PacketQueue {
    state: Mutex<State>,
    flows: RandomState,
    epoch: Instant,
    counters: Arc<Counters>,
}

struct State {
    paths: Vec<PathQueue>,
    table: FlowTable,
    /// The paths that work, and when they were asked for.
    views: Vec<DatagramPath>,
    updated: Option<Time>,
    /// The same for the table; kept so that packets need no allocation.
    candidates: Vec<Candidate>,
    /// Packets of the flow that pauses.
    held: VecDeque<Held>,
    /// Packets that CoDel and limits dropped.
    dropped: VecDeque<Exit<Contained>>,
    /// `None` if the peer takes no copies.
    copies: Option<Copies>,
    /// The task that sends.
    sender: Option<Waker>,
}

/// The queue of a path.
struct PathQueue {
    id: PathId,
    /// The packet that leaves next.
    head: Option<Waiting>,
    waiting: FqCodel<Contained>,
}

/// A packet that waits until its flow continues.
struct Held {
    packet: Waiting,
    path: PathId,
    until: Time,
}

impl PathQueue {
    fn new(id: PathId) -> Self {
        let config = FqCodelConfig {
            queues: FLOWS,
            packets: MAX_PACKETS,
            ..FqCodelConfig::default()
        };
        Self {
            id,
            head: None,
            waiting: FqCodel::new(config),
        }
    }

    fn bytes(&self) -> u64 {
        let head = self
            .head
            .as_ref()
            .map_or(0, |packet| u64::from(packet.size));
        head + self.waiting.bytes()
    }

    fn pop(&mut self, now: Time, dropped: &mut VecDeque<Exit<Contained>>) -> Option<Waiting> {
        self.head
            .take()
            .or_else(|| self.waiting.dequeue(now, dropped))
    }
}

impl State {
    /// Shows the paths that work, with what waits for them; one if the transport does not choose.
    fn show(&self, candidates: &mut Vec<Candidate>) {
        candidates.clear();
        let waiting = |id| {
            let queue = self.paths.iter().find(|path| path.id == id);
            queue.map_or(0, PathQueue::bytes)
        };
        if self.views.is_empty() {
            candidates.push(Candidate {
                id: PathId::INITIAL,
                is_backup: false,
                rate: 0.0,
                waiting: waiting(PathId::INITIAL),
                delay: Duration::ZERO,
                jitter: Duration::ZERO,
            });
        }
        let candidate = |path: &DatagramPath| {
            let view = &path.view;
            let delay = Duration::try_from_secs_f64(view.departure() + view.arrival());
            Candidate {
                id: view.id,
                is_backup: view.status == PathStatus::Backup,
                rate: view.delivery_rate(),
                waiting: waiting(view.id),
                delay: delay.unwrap_or(UNKNOWN_DELAY).min(UNKNOWN_DELAY),
                jitter: 2 * view.rttvar,
            }
        };
        candidates.extend(self.views.iter().map(candidate));
    }

    /// Queues a packet for the path of its flow.
    fn push(&mut self, now: Time, packet: Waiting) {
        if let Some(choice) = self.choose(now, &packet) {
            self.place(now, packet, choice);
        }
    }

    /// Queues a packet that has just come; on a second path as well if that is worth it.
    fn push_first(&mut self, now: Time, mut packet: Waiting, is_urgent: bool) {
        let Some(choice) = self.choose(now, &packet) else {
            return;
        };
        if let Some(path) = choice.filler {
            let filler = Packet {
                body: Contained::filler(packet.size),
                ..packet
            };
            self.enqueue(now, path, filler);
        }
        let is_worth_it = is_urgent || choice.is_light;
        if is_worth_it
            && choice.paused_until.is_none()
            && let Some(Copies {
                copied,
                next: number,
            }) = self.copies
            && packet.size <= copied.max_packet()
            && let Some(second) = self.second(choice.path)
        {
            let next = number.wrapping_add(1);
            self.copies = Some(Copies { copied, next });
            packet.body = packet.body.numbered(number);
            let copy = Packet {
                body: packet.body.copied(),
                ..packet
            };
            self.enqueue(now, second, copy);
        }
        self.place(now, packet, choice);
    }

    /// Another path that has room for a copy: none that is a backup, and none on which packets wait.
    fn second(&self, first: PathId) -> Option<PathId> {
        let has_room = |path: &&DatagramPath| {
            let view = &path.view;
            let waits = |queue: &PathQueue| queue.id == view.id && queue.bytes() > 0;
            view.id != first
                && view.status == PathStatus::Available
                && view.smoothed_rtt.is_some()
                && !view.is_full()
                && !self.paths.iter().any(waits)
        };
        let others = self.views.iter().filter(has_room);
        let second = others.min_by_key(|path| path.view.smoothed_rtt)?;
        Some(second.view.id)
    }

    fn choose(&mut self, now: Time, packet: &Waiting) -> Option<Choice> {
        let arrived = Arrived {
            flow: packet.flow,
            size: packet.size as usize,
        };
        let mut candidates = std::mem::take(&mut self.candidates);
        self.show(&mut candidates);
        let choice = self.table.choose(now, arrived, &candidates);
        self.candidates = candidates;
        choice
    }

    fn place(&mut self, now: Time, packet: Waiting, choice: Choice) {
        let path = choice.path;
        match choice.paused_until {
            Some(until) if self.held.len() < MAX_HELD => {
                self.held.push_back(Held {
                    packet,
                    path,
                    until,
                });
            }
            Some(_) => {
                let dropped = Exit::dropped(now, packet, DropReason::QueueFull);
                self.dropped.push_back(dropped);
            }
            None => self.enqueue(now, path, packet),
        }
    }

    fn enqueue(&mut self, now: Time, id: PathId, packet: Waiting) {
        let at = self.paths.iter().position(|path| path.id == id);
        let at = at.unwrap_or_else(|| {
            self.paths.push(PathQueue::new(id));
            self.paths.len() - 1
        });
        let queue = &mut self.paths[at].waiting;
        queue.enqueue(now, packet, &mut self.dropped);
    }

    /// Queues the packets whose flow continues.
    fn release(&mut self, now: Time) {
        while self.held.front().is_some_and(|held| held.until <= now)
            && let Some(Held { packet, path, .. }) = self.held.pop_front()
        {
            self.enqueue(now, path, packet);
        }
    }

    /// The paths have changed: what waits for one that does not work goes to others.
    fn reroute(&mut self, now: Time) {
        if self.views.is_empty() {
            return;
        }
        let works = |path: &PathQueue| self.views.iter().any(|view| view.view.id == path.id);
        let failed: Vec<_> = self.paths.extract_if(.., |path| !works(path)).collect();
        for mut path in failed {
            while let Some(packet) = path.pop(now, &mut self.dropped) {
                // Copies are on another path already.
                if !packet.body.is_copy {
                    self.push(now, packet);
                }
            }
        }
    }
}

impl PacketQueue {
    /// Queues for a peer that takes these copies, or none.
    pub(crate) fn new(counters: Arc<Counters>, copies: Option<Copied>) -> Self {
        let light = copies.unwrap_or(Copied::Small).max_rate();
        Self {
            state: Mutex::new(State {
                paths: Vec::new(),
                table: FlowTable::new(copies.is_some(), light),
                views: Vec::new(),
                updated: None,
                candidates: Vec::new(),
                held: VecDeque::new(),
                dropped: VecDeque::new(),
                copies: copies.map(|copied| Copies { copied, next: 0 }),
                sender: None,
            }),
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

    /// Asks for the paths that work, unless it has just done so.
    pub(crate) fn update(&self, read: impl FnOnce(&mut Vec<DatagramPath>)) {
        let now = self.now();
        let mut state = self.lock();
        if state.updated.is_none_or(|at| now >= at + UPDATE_INTERVAL) {
            state.updated = Some(now);
            read(&mut state.views);
            state.reroute(now);
        }
        state.release(now);
        self.count(&mut state);
    }

    /// A path does not answer: its packets go to others, and the paths are asked for anew. Returns whether there are others.
    pub(crate) fn on_failed(&self, id: PathId) -> bool {
        let mut state = self.lock();
        state.updated = None;
        state.views.retain(|path| path.view.id != id);
        state.reroute(self.now());
        self.count(&mut state);
        !state.views.is_empty()
    }

    /// A packet with this header is to be sent.
    pub(crate) fn push(&self, header: &Header, packet: Contained) {
        let packet = Packet {
            flow: header.flow(&self.flows),
            ecn: header.ecn,
            ..Packet::new(packet.packet().len() as u32, packet)
        };
        let now = self.now();
        let mut state = self.lock();
        state.release(now);
        state.push_first(now, packet, header.is_urgent());
        self.count(&mut state);
        let sender = state.sender.take();
        drop(state);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// The task of `waker` is woken by the next packet.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state
            .sender
            .as_ref()
            .is_some_and(|sender| sender.will_wake(waker))
        {
            state.sender = Some(waker.clone());
        }
    }

    /// The paths for which packets may wait.
    pub(crate) fn paths(&self) -> Vec<PathId> {
        self.lock().paths.iter().map(|path| path.id).collect()
    }

    /// When the next packets are released that a pause holds back.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        let first = self.lock().held.front()?.until;
        Some(self.epoch + first.since(Time::ZERO))
    }

    /// The next packet for a path.
    pub(crate) fn pop(&self, id: PathId) -> Option<Waiting> {
        let mut state = self.lock();
        let State { paths, dropped, .. } = &mut *state;
        let queue = paths.iter_mut().find(|path| path.id == id)?;
        let packet = queue.pop(self.now(), dropped);
        self.count(&mut state);
        let mut packet = packet?;
        if packet.ecn == marline_link::Ecn::Ce {
            let begins = packet.body.packet_at;
            mark_congestion(&mut packet.body.bytes[begins..]);
        }
        Some(packet)
    }

    /// A packet cannot leave yet: it is the next again.
    pub(crate) fn put_back(&self, id: PathId, packet: Waiting) {
        let mut state = self.lock();
        match state.paths.iter_mut().find(|path| path.id == id) {
            Some(queue) => queue.head = Some(packet),
            None => state.push(self.now(), packet),
        }
    }

    fn count(&self, state: &mut State) {
        for exit in state.dropped.drain(..) {
            if !exit.packet.body.is_copy {
                self.counters.on_dropped(Dropped::Queue);
            }
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

    fn pop(queue: &PacketQueue) -> Option<usize> {
        let packet = queue.pop(PathId::INITIAL)?;
        Some(packet.body.packet().len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_flow_with_little_does_not_wait_for_one_with_much() {
        let queue = PacketQueue::new(Arc::default(), None);
        for _ in 0..100 {
            push(&queue, "10.0.0.2", 1400);
        }
        push(&queue, "10.0.0.3", 100);
        let position = std::iter::from_fn(|| pop(&queue)).position(|length| length <= 200);
        assert!(position.unwrap() <= 2, "{position:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_packets_is_limited() {
        let counters = Arc::<Counters>::default();
        let queue = PacketQueue::new(Arc::clone(&counters), None);
        for _ in 0..MAX_PACKETS + 100 {
            push(&queue, "10.0.0.2", 1400);
        }
        let waiting: usize = queue
            .lock()
            .paths
            .iter()
            .map(|path| path.waiting.len())
            .sum();
        assert_eq!(waiting, MAX_PACKETS);
        assert_eq!(counters.dropped(Dropped::Queue), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_standing_queue_is_shortened() {
        let counters = Arc::<Counters>::default();
        let queue = PacketQueue::new(Arc::clone(&counters), None);
        // Two arrive for each that leaves.
        for _ in 0..600 {
            push(&queue, "10.0.0.2", 1400);
            push(&queue, "10.0.0.2", 1400);
            assert!(pop(&queue).is_some());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(counters.dropped(Dropped::Queue) > 10);
    }

    /// A path of 1 MB/s.
    fn view(id: u32) -> DatagramPath {
        let view = marline::scheduling::path::PathView {
            id: PathId(id),
            status: PathStatus::Available,
            smoothed_rtt: Some(Duration::from_millis(20)),
            rttvar: Duration::ZERO,
            window: 20_000,
            in_flight: 0,
            queued: 0,
            mtu: 1400,
            rate: None,
        };
        DatagramPath {
            view,
            queued: 0,
            room: 4000,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_a_path_that_fails_goes_to_another_in_order() {
        let queue = PacketQueue::new(Arc::default(), None);
        queue.update(|paths| paths.push(view(0)));
        for length in 100..110 {
            push(&queue, "10.0.0.2", length);
        }
        let first = queue.pop(PathId(0)).unwrap();
        queue.put_back(PathId(0), first);
        queue.update(|_| panic!("the paths are known"));
        tokio::time::advance(UPDATE_INTERVAL).await;
        queue.update(|paths| *paths = vec![view(1)]);
        assert!(queue.pop(PathId(0)).is_none());
        let lengths = std::iter::from_fn(|| queue.pop(PathId(1)));
        let lengths: Vec<_> = lengths.map(|packet| packet.body.packet().len()).collect();
        assert_eq!(lengths, (128..138).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn small_packets_are_sent_on_a_second_path_that_has_room() {
        let count = |takes, paths: &[DatagramPath], length: usize| {
            let queue = PacketQueue::new(Arc::default(), takes);
            queue.update(|views| views.extend(paths));
            push(&queue, "10.0.0.2", length);
            let packets = [0, 1].map(|id| queue.pop(PathId(id)));
            let copies = packets.iter().flatten();
            assert!(
                copies
                    .clone()
                    .filter(|packet| !packet.body.is_copy())
                    .count()
                    == 1
            );
            let payloads: Vec<_> = copies.map(|packet| packet.body.payload()).collect();
            assert!(payloads.windows(2).all(|pair| pair[0] == pair[1]));
            payloads.len()
        };
        let both = [view(0), view(1)];
        assert_eq!(count(Some(Copied::Small), &both, 100), 2);
        assert_eq!(count(Some(Copied::Small), &both, 1000), 1);
        assert_eq!(count(None, &both, 100), 1);
        assert_eq!(count(Some(Copied::Interactive), &both, 1000), 2);
        assert_eq!(count(Some(Copied::Interactive), &both, 1400), 1);
        let mut unsuitable = both;
        unsuitable[1].view.status = PathStatus::Backup;
        assert_eq!(count(Some(Copied::Small), &unsuitable, 100), 1);
        let mut unsuitable = both;
        unsuitable[1].view.in_flight = unsuitable[1].view.window;
        assert_eq!(count(Some(Copied::Small), &unsuitable, 100), 1);
    }
}
