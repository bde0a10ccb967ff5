//! Unreliable datagrams (RFC 9221).

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use marline_wire::frame::Datagram;
use marline_wire::{ErrorCode, TransportError, varint};

use crate::limits::{DATAGRAM_OVERHEAD, MAX_REROUTED_DATAGRAM_BYTES};
use crate::scheduling::path::PathView;
use crate::time::Instant;

/// Datagrams that were assigned to a path wait for it for so long, at most, as an estimate at its rate: longer queues belong
/// to the application, which can order and drop what waits.
const MAX_WAIT: Duration = Duration::from_millis(4);

/// Full datagrams that a path of any rate takes.
const MIN_WAITING: u64 = 3;

/// The age up to which a datagram in flight on a path that fails is sent on another. TCP, and what else needs it, repeats older
/// data itself: the smallest retransmission timeout in use is 200 ms.
const MAX_REROUTED_AGE: Duration = Duration::from_millis(250);

/// The reason why a datagram was not queued for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// The peer does not accept datagrams.
    #[error("the peer does not accept datagrams")]
    Unsupported,
    /// The datagram does not fit into a packet of the path, or exceeds the peer's limit.
    #[error("the datagram is larger than the {max} bytes that can be sent")]
    TooLarge {
        /// Maximum length that can be sent, in bytes.
        max: usize,
    },
    /// The send buffer is full, or the queue of the path.
    #[error("the send buffer for datagrams is full")]
    Blocked,
    /// There is no such path, or it does not answer.
    #[error("the path cannot carry datagrams now")]
    NoPath,
}

/// A path that can carry datagrams now, and the datagrams that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramPath {
    /// The path as schedulers see it; the datagrams that wait for it are among what is in flight and queued.
    pub view: PathView,
    /// Bytes of datagrams that wait for the path.
    pub queued: usize,
    /// Bytes that [`send_datagram_on`](crate::Connection::send_datagram_on) accepts more before it is blocked.
    pub room: usize,
}

/// A datagram that waits to be sent.
#[derive(Clone, Debug)]
struct Queued {
    data: Bytes,
    /// When a path that failed carried it.
    rerouted: Option<Instant>,
}

/// A datagram in flight that another path carries if its own fails.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    data: Bytes,
    /// When it was first sent.
    sent_at: Instant,
}

/// Datagrams that wait, for one path or for the best one.
#[derive(Debug, Default)]
pub(crate) struct DatagramQueue {
    waiting: VecDeque<Queued>,
    /// Their bytes, with what each of them costs.
    bytes: usize,
    /// The limit of `bytes` when a datagram was last offered.
    limit: usize,
    /// Whether a call returned [`DatagramError::Blocked`] and the application waits.
    blocked: bool,
    /// Whether data of streams, if there is any, has the next packet of the path: its latest one began with datagrams.
    streams_next: bool,
}

impl DatagramQueue {
    /// A packet of the path has datagrams: the next is for streams.
    pub(crate) fn give_turn(&mut self) {
        self.streams_next = true;
    }

    /// Whether the next packet of the path is for streams; true once.
    pub(crate) fn take_turn(&mut self) -> bool {
        std::mem::take(&mut self.streams_next)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes that wait, with what each datagram costs.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the application has more to send, and waits for the queue.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    fn cost(data: &Bytes) -> usize {
        data.len() + DATAGRAM_OVERHEAD
    }

    fn push(&mut self, queued: Queued) {
        self.bytes += Self::cost(&queued.data);
        self.waiting.push_back(queued);
    }

    fn pop(&mut self) -> Option<Queued> {
        let queued = self.waiting.pop_front()?;
        self.bytes -= Self::cost(&queued.data);
        Some(queued)
    }

    /// Queues `data`, unless that exceeds `limit` bytes.
    fn offer(&mut self, data: Bytes, limit: usize) -> Result<(), DatagramError> {
        self.limit = limit;
        if self.bytes + Self::cost(&data) > limit {
            self.blocked = true;
            return Err(DatagramError::Blocked);
        }
        self.push(Queued {
            data,
            rerouted: None,
        });
        Ok(())
    }

    /// Whether an application that waits may retry; true once.
    pub(crate) fn take_unblocked(&mut self) -> bool {
        self.bytes <= self.limit / 2 && std::mem::take(&mut self.blocked)
    }

    /// Removes and returns the datagrams, so that an application that waits retries.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Bytes> {
        self.bytes = 0;
        self.waiting.drain(..).map(|queued| queued.data)
    }

    /// The next datagram, unless it is too old to be sent on another path than its own.
    fn front(&mut self, now: Instant) -> Option<&Queued> {
        let is_late = |queued: &Queued| {
            let sent_at = queued.rerouted;
            sent_at.is_some_and(|sent_at| now > sent_at + MAX_REROUTED_AGE)
        };
        while self.waiting.front().is_some_and(is_late) {
            self.pop();
        }
        self.waiting.front()
    }

    fn next_frame_size(&self) -> Option<usize> {
        self.waiting.front().map(|queued| frame_size(&queued.data))
    }
}

/// Size of the DATAGRAM frame with `data`, in bytes.
fn frame_size(data: &Bytes) -> usize {
    1 + varint::size(data.len() as u64) + data.len()
}

/// The room for DATAGRAM frames in a packet.
pub(crate) struct FrameRoom<'a> {
    pub(crate) buf: &'a mut Vec<u8>,
    /// The length of `buf` that the packet may reach.
    pub(crate) limit: usize,
    /// Whether the packet is empty and of the full size: a datagram that does not fit is dropped.
    pub(crate) fresh: bool,
}

/// Received datagrams, and datagrams to be sent.
#[derive(Debug)]
pub(crate) struct Datagrams {
    incoming: VecDeque<Bytes>,
    incoming_bytes: usize,
    receive_buffer: Option<usize>,
    /// Those for the best path.
    outgoing: DatagramQueue,
    send_buffer: usize,
    /// Maximum DATAGRAM frame size that the peer accepts, in bytes; 0 if it accepts none.
    peer_limit: u64,
    /// Whether the queue of a path has the next turn, and not the queue for the best one.
    turn_of_path: bool,
}

impl Datagrams {
    pub(crate) fn new(receive_buffer: Option<usize>, send_buffer: usize) -> Self {
        Self {
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            receive_buffer,
            outgoing: DatagramQueue::default(),
            send_buffer,
            peer_limit: 0,
            turn_of_path: false,
        }
    }

    pub(crate) fn set_peer_limit(&mut self, max_datagram_frame_size: u64) {
        self.peer_limit = max_datagram_frame_size;
    }

    /// Maximum length of a datagram in a packet with `room` bytes of payload, in bytes.
    pub(crate) fn max_len(&self, room: usize) -> Option<usize> {
        let frame = usize::try_from(self.peer_limit)
            .unwrap_or(usize::MAX)
            .min(room);
        let header = 1 + varint::size(frame as u64);
        (self.peer_limit > 0).then(|| frame.saturating_sub(header))
    }

    /// Queues `data`, which must fit a packet with `room` bytes of payload, for the best path.
    ///
    /// # Errors
    ///
    /// See [`DatagramError`].
    pub(crate) fn send(&mut self, data: Bytes, room: usize) -> Result<(), DatagramError> {
        self.check_len(&data, room)?;
        self.outgoing.offer(data, self.send_buffer)
    }

    /// Queues `data`, which must fit a packet with `room` bytes of payload, for the path of `queue` and `view`.
    ///
    /// # Errors
    ///
    /// See [`DatagramError`].
    pub(crate) fn send_on(
        &self,
        queue: &mut DatagramQueue,
        view: &PathView,
        data: Bytes,
        room: usize,
    ) -> Result<(), DatagramError> {
        self.check_len(&data, room)?;
        queue.offer(data, self.limit_of(view))
    }

    fn check_len(&self, data: &Bytes, room: usize) -> Result<(), DatagramError> {
        let max = self.max_len(room).ok_or(DatagramError::Unsupported)?;
        match data.len() > max {
            true => Err(DatagramError::TooLarge { max }),
            false => Ok(()),
        }
    }

    /// The limit of bytes that wait for a path.
    fn limit_of(&self, view: &PathView) -> usize {
        let few = MIN_WAITING * (view.mtu + DATAGRAM_OVERHEAD as u64);
        let brief = view.delivery_rate() * MAX_WAIT.as_secs_f64();
        (few.max(brief as u64) as usize).min(self.send_buffer)
    }

    /// A path as applications that choose see it.
    pub(crate) fn path_view(&self, queue: &DatagramQueue, view: PathView) -> DatagramPath {
        DatagramPath {
            view,
            queued: queue.bytes(),
            room: self.limit_of(&view).saturating_sub(queue.bytes()),
        }
    }

    /// A datagram that waited for a path that does not answer is for the best path.
    pub(crate) fn reroute_waiting(&mut self, data: Bytes) {
        self.reroute(Queued {
            data,
            rerouted: None,
        });
    }

    /// A datagram was in flight on a path that does not answer: it is sent on the best path, unless it is old.
    pub(crate) fn reroute_sent(&mut self, sent: &InFlight) {
        self.reroute(Queued {
            data: sent.data.clone(),
            rerouted: Some(sent.sent_at),
        });
    }

    fn reroute(&mut self, queued: Queued) {
        let rest = MAX_REROUTED_DATAGRAM_BYTES.saturating_sub(self.outgoing.bytes());
        if DatagramQueue::cost(&queued.data) <= rest {
            self.outgoing.push(queued);
        }
    }

    pub(crate) fn receive(&mut self) -> Option<Bytes> {
        let data = self.incoming.pop_front()?;
        self.incoming_bytes -= data.len() + DATAGRAM_OVERHEAD;
        Some(data)
    }

    /// Stores a received datagram; drops the oldest ones if the buffer is full. Returns whether the buffer was
    /// empty before.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if we did not advertise support for datagrams.
    pub(crate) fn on_frame(&mut self, frame: &Datagram<'_>) -> Result<bool, TransportError> {
        let Some(limit) = self.receive_buffer else {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a DATAGRAM frame, although support was not announced",
            ));
        };
        let first = self.incoming.is_empty();
        let cost = frame.data.len() + DATAGRAM_OVERHEAD;
        while self.incoming_bytes + cost > limit && self.receive().is_some() {}
        if cost <= limit {
            self.incoming_bytes += cost;
            self.incoming.push_back(Bytes::copy_from_slice(frame.data));
        }
        Ok(first)
    }

    /// Size of the next DATAGRAM frame of the path of `queue`, which may be the best one, in bytes; the larger one if either queue may
    /// have its turn.
    pub(crate) fn next_frame_size(&self, queue: &DatagramQueue, is_best: bool) -> Option<usize> {
        let of_best = is_best.then(|| self.outgoing.next_frame_size()).flatten();
        queue.next_frame_size().max(of_best)
    }

    /// Whether datagrams wait for the best path.
    pub(crate) fn is_due(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether the application has more to send on the best path, and waits.
    pub(crate) fn is_blocked(&self) -> bool {
        self.outgoing.is_blocked()
    }

    /// Appends as many DATAGRAM frames as fit, of those that wait for the packet's path in `queue` and, if it `is_best`, of
    /// those for the best path. Passes to `sent` what another path is to carry if this one fails.
    pub(crate) fn write_frames(
        &mut self,
        now: Instant,
        queue: &mut DatagramQueue,
        is_best: bool,
        room: &mut FrameRoom<'_>,
        mut sent: impl FnMut(InFlight),
    ) {
        // In turns, so that neither waits for all of the other.
        for _ in 0..2 {
            self.turn_of_path = !self.turn_of_path;
            if self.turn_of_path {
                write_all(now, queue, room, |queued| {
                    sent(InFlight {
                        data: queued.data,
                        sent_at: queued.rerouted.unwrap_or(now),
                    });
                });
            } else if is_best {
                write_all(now, &mut self.outgoing, room, |queued| {
                    if let Some(sent_at) = queued.rerouted {
                        let data = queued.data;
                        sent(InFlight { data, sent_at });
                    }
                });
            }
        }
        // The other begins the next packet.
        self.turn_of_path = !self.turn_of_path;
    }

    /// Whether an application that waits may retry; true once.
    pub(crate) fn take_unblocked(&mut self) -> bool {
        self.outgoing.take_unblocked()
    }
}

/// Appends as many DATAGRAM frames of `queue` as fit, and passes the datagrams to `written`. A datagram that does not fit into
/// an empty packet is dropped.
fn write_all(
    now: Instant,
    queue: &mut DatagramQueue,
    room: &mut FrameRoom<'_>,
    mut written: impl FnMut(Queued),
) {
    while let Some(Queued { data, .. }) = queue.front(now) {
        let frame = Datagram { data };
        let fits = room.buf.len() + frame_size(data) <= room.limit;
        if fits {
            frame.encode(room.buf);
            room.fresh = false;
        } else if !room.fresh {
            break;
        }
        if let Some(queued) = queue.pop()
            && fits
        {
            written(queued);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The datagrams of the next packet, of the path of `queue` and for the best one.
    fn write(datagrams: &mut Datagrams, queue: &mut DatagramQueue, now: Instant) -> Vec<Bytes> {
        let mut buf = Vec::new();
        let mut room = FrameRoom {
            buf: &mut buf,
            limit: 1200,
            fresh: true,
        };
        let mut kept = Vec::new();
        datagrams.write_frames(now, queue, true, &mut room, |sent| kept.push(sent.data));
        kept
    }

    /// A path of 1 MB/s.
    fn view() -> PathView {
        PathView {
            id: marline_wire::PathId(1),
            status: Default::default(),
            smoothed_rtt: Some(Duration::from_millis(20)),
            rttvar: Duration::ZERO,
            window: 20_000,
            in_flight: 0,
            queued: 0,
            mtu: 1200,
            rate: None,
        }
    }

    fn supported() -> Datagrams {
        let mut datagrams = Datagrams::new(None, 1 << 20);
        datagrams.set_peer_limit(65_535);
        datagrams
    }

    #[test]
    fn a_path_holds_what_it_sends_in_a_few_milliseconds() {
        let datagrams = supported();
        for (window, least, most) in [(20_000, 3600, 4500), (2_000_000, 380_000, 400_000)] {
            let view = PathView { window, ..view() };
            let mut queue = DatagramQueue::default();
            let data = Bytes::from_static(&[7; 1000]);
            while datagrams
                .send_on(&mut queue, &view, data.clone(), 1200)
                .is_ok()
            {}
            let held = queue.bytes();
            assert!((least - 1100..most).contains(&held), "{held}");
            assert!(!queue.take_unblocked());
            assert_eq!(datagrams.path_view(&queue, view).queued, held);
        }
    }

    #[test]
    fn datagrams_of_a_path_that_failed_are_sent_once_more_while_they_are_young() {
        let mut datagrams = supported();
        let mut queue = DatagramQueue::default();
        let data = Bytes::from_static(b"x");
        let sent_at = Instant::EPOCH + Duration::from_secs(1);
        for age in [
            MAX_REROUTED_AGE,
            MAX_REROUTED_AGE + Duration::from_millis(1),
        ] {
            let sent = InFlight {
                data: data.clone(),
                sent_at,
            };
            datagrams.reroute_sent(&sent);
            let written = write(&mut datagrams, &mut queue, sent_at + age);
            assert_eq!(!written.is_empty(), age <= MAX_REROUTED_AGE, "{age:?}");
            assert!(!datagrams.is_due());
        }
    }

    #[test]
    fn rerouted_datagrams_have_a_limit_and_delay_others_by_a_packet() {
        let mut datagrams = supported();
        let mut queue = DatagramQueue::default();
        for _ in 0..1000 {
            datagrams.reroute_waiting(Bytes::from_static(&[0; 1000]));
        }
        assert!(datagrams.outgoing.bytes() <= MAX_REROUTED_DATAGRAM_BYTES);
        let own = Bytes::from_static(&[1; 1000]);
        datagrams
            .send_on(&mut queue, &view(), own.clone(), 1200)
            .unwrap();
        let written = [(); 2].map(|()| write(&mut datagrams, &mut queue, Instant::EPOCH));
        assert_eq!(written.concat(), [own]);
    }

    #[test]
    fn either_queue_may_have_the_next_frame() {
        let mut datagrams = supported();
        let mut queue = DatagramQueue::default();
        assert_eq!(datagrams.next_frame_size(&queue, true), None);
        let data = |len: usize| Bytes::from(vec![0; len]);
        datagrams
            .send_on(&mut queue, &view(), data(1000), 1200)
            .unwrap();
        datagrams.send(data(1100), 1200).unwrap();
        assert_eq!(datagrams.next_frame_size(&queue, false), Some(1003));
        assert_eq!(datagrams.next_frame_size(&queue, true), Some(1103));
    }

    #[test]
    fn a_full_receive_buffer_drops_the_oldest() {
        let mut datagrams = Datagrams::new(Some(3 * (10 + DATAGRAM_OVERHEAD)), 1000);
        for n in 0..5u8 {
            datagrams.on_frame(&Datagram { data: &[n; 10] }).unwrap();
        }
        let kept: Vec<u8> = std::iter::from_fn(|| datagrams.receive())
            .map(|data| data[0])
            .collect();
        assert_eq!(kept, [2, 3, 4]);
    }

    #[test]
    fn datagrams_need_support_at_the_receiver() {
        let mut datagrams = Datagrams::new(None, 1000);
        assert_eq!(
            datagrams.send(Bytes::from_static(b"x"), 1200),
            Err(DatagramError::Unsupported)
        );
        assert!(datagrams.on_frame(&Datagram { data: b"x" }).is_err());
    }

    #[test]
    fn a_full_send_buffer_blocks_until_it_drains() {
        let mut datagrams = Datagrams::new(None, 1 << 10);
        datagrams.set_peer_limit(65_535);
        let sent =
            (0..).take_while(|_| datagrams.send(Bytes::from_static(&[7; 100]), 1200).is_ok());
        assert!(sent.count() >= 5);
        assert!(!datagrams.take_unblocked());
        while datagrams.is_due() {
            write(
                &mut datagrams,
                &mut DatagramQueue::default(),
                Instant::EPOCH,
            );
        }
        assert!(datagrams.take_unblocked());
        assert!(!datagrams.take_unblocked());
    }
}
