//! The streams of a connection (RFC 9000, sections 2 to 4).
//!
//! `send` and `recv` hold the state diagrams of one stream's two parts; `ids` counts streams, `flow`
//! bytes. On top of them, [`Streams`] has three groups of methods: operations of the application
//! (`app`), frames of the peer (`receive`), and sending (`transmit`).

mod app;
mod control;
mod copies;
mod error;
mod flow;
mod ids;
mod ready;
mod receive;
mod recv;
mod send;
mod states;
mod token;
mod transmit;

#[cfg(test)]
mod tests;

pub use error::{ClosedStream, FinishError, ReadError, WriteError};
pub(crate) use token::{Segment, StreamToken};
pub(crate) use transmit::ReadyChange;

use control::{ControlFrame, ControlQueue, DueFrames};
use flow::{ReceiveWindow, SendCredit, WriteBuffer};
use ids::StreamIds;
use marline_wire::{Dir, ErrorCode, Side, StreamId, TransportError};
use ready::{Readiness, ReadyQueue};
use recv::RecvPart;
use rustc_hash::FxHashMap;
use send::SendPart;
use states::StateLog;
use std::collections::VecDeque;
use std::time::Duration;

/// Limits on the streams and on their data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamsConfig {
    /// Role of this end.
    pub(crate) side: Side,
    /// Initial window of all streams, in bytes: `initial_max_data`.
    pub(crate) receive_window: u64,
    /// Initial window of each stream, in bytes: `initial_max_stream_data_*`.
    pub(crate) stream_receive_window: u64,
    /// Maximum window of the connection, in bytes.
    pub(crate) max_receive_window: u64,
    /// Maximum window of a stream, in bytes.
    pub(crate) max_stream_receive_window: u64,
    /// Maximum number of bidirectional streams that the peer may have open.
    pub(crate) max_remote_bidi: u64,
    /// Maximum number of unidirectional streams that the peer may have open.
    pub(crate) max_remote_uni: u64,
    /// Limit on written, unacknowledged bytes of all streams, at which writes block.
    pub(crate) send_buffer_limit: u64,
}

/// The initial limits of the peer, from its transport parameters (RFC 9000, section 18.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerLimits {
    /// Bytes on all streams.
    pub(crate) max_data: u64,
    /// Bytes on each bidirectional stream that the peer opens.
    pub(crate) max_stream_data_bidi_local: u64,
    /// Bytes on each bidirectional stream that this end opens.
    pub(crate) max_stream_data_bidi_remote: u64,
    /// Bytes on each unidirectional stream.
    pub(crate) max_stream_data_uni: u64,
    /// Bidirectional streams that this end may open.
    pub(crate) max_streams_bidi: u64,
    /// Unidirectional streams that this end may open.
    pub(crate) max_streams_uni: u64,
}

impl PeerLimits {
    /// Whether no limit is below that of `other`.
    fn permits_all_of(&self, other: &Self) -> bool {
        self.max_data >= other.max_data
            && self.max_stream_data_bidi_local >= other.max_stream_data_bidi_local
            && self.max_stream_data_bidi_remote >= other.max_stream_data_bidi_remote
            && self.max_stream_data_uni >= other.max_stream_data_uni
            && self.max_streams_bidi >= other.max_streams_bidi
            && self.max_streams_uni >= other.max_streams_uni
    }
}

/// A notification about streams to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened one or more streams of this direction.
    Opened(Dir),
    /// Data, the end or a reset can be read. Emitted again after a read that blocked.
    Readable(StreamId),
    /// Data can be written again, after a write that blocked.
    Writable(StreamId),
    /// All data of a finished stream is acknowledged.
    Finished(StreamId),
    /// The peer sent STOP_SENDING; unsent data is dropped.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The application's error code.
        error_code: u64,
    },
    /// A stream of this direction can be opened again, after an attempt that failed.
    Available(Dir),
}

/// Counters over the connection's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamsStats {
    /// Number of existing streams.
    pub(crate) open: usize,
    /// Bytes sent for the first time.
    pub(crate) bytes_sent: u64,
    /// Retransmitted bytes.
    pub(crate) bytes_retransmitted: u64,
    /// Bytes of flow control credit that the peer has used, gaps included.
    pub(crate) bytes_received: u64,
    /// Bytes written and not acknowledged.
    pub(crate) bytes_held: u64,
    /// Bytes buffered because earlier ones are missing.
    pub(crate) out_of_order: OutOfOrder,
}

/// Bytes buffered because earlier ones of their stream are missing, over all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutOfOrder {
    /// Present value.
    pub(crate) bytes: u64,
    /// Maximum so far.
    pub(crate) max: u64,
}

impl OutOfOrder {
    /// Updates the values after a stream that held `before` bytes holds `after`.
    fn update(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes - before + after;
        self.max = self.max.max(self.bytes);
    }
}

/// A stream: its parts, due control frames, and its state at the scheduler.
#[derive(Debug)]
struct Stream {
    /// Absent if only the peer sends, and after the sending part is closed.
    send: Option<SendPart>,
    /// Absent if only this end sends, and after the receiving part is closed.
    recv: Option<RecvPart>,
    due: DueFrames,
    readiness: Readiness,
}

impl Stream {
    fn is_ready(&self, permitted: bool, credit: u64) -> bool {
        permitted && self.send.as_ref().is_some_and(|send| send.is_ready(credit))
    }
}

/// All streams of a connection.
///
/// Call [`poll_event`](Self::poll_event) and [`poll_ready_change`](Self::poll_ready_change) until
/// `None` after other methods: the first is for the application, the second for the stream scheduler.
#[derive(Debug)]
pub(crate) struct Streams {
    config: StreamsConfig,
    ids: StreamIds,
    table: FxHashMap<StreamId, Box<Stream>>,
    peer: PeerLimits,
    credit: SendCredit,
    window: ReceiveWindow,
    received: u64,
    out_of_order: OutOfOrder,
    retransmitted: u64,
    buffer: WriteBuffer,
    /// Streams whose writes wait for memory in `buffer`.
    waiting_writers: VecDeque<StreamId>,
    control: ControlQueue,
    ready: ReadyQueue,
    events: VecDeque<StreamEvent>,
    rtt: Duration,
    /// Log of state changes for an observer.
    states: Option<Box<StateLog>>,
}

impl Streams {
    /// Bytes that the peer has sent on all streams, gaps included.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received
    }

    /// Number of those that were not read or dropped.
    pub(crate) fn unread_bytes(&self) -> u64 {
        self.received.saturating_sub(self.window.consumed())
    }

    /// Whether a bidirectional stream of this end is not fully received.
    pub(crate) fn awaits_response(&self) -> bool {
        self.table.iter().any(|(id, stream)| {
            id.dir() == Dir::Bi
                && id.initiator() == self.config.side
                && stream.recv.as_ref().is_some_and(RecvPart::is_receiving)
        })
    }

    /// No streams and no limits of the peer: none can be opened.
    pub(crate) fn new(config: StreamsConfig) -> Self {
        Self {
            ids: StreamIds::new(config.side, [config.max_remote_bidi, config.max_remote_uni]),
            table: FxHashMap::default(),
            peer: PeerLimits::default(),
            credit: SendCredit::default(),
            window: ReceiveWindow::new(config.receive_window, config.max_receive_window),
            received: 0,
            out_of_order: OutOfOrder::default(),
            retransmitted: 0,
            buffer: WriteBuffer::new(config.send_buffer_limit),
            waiting_writers: VecDeque::new(),
            control: ControlQueue::default(),
            ready: ReadyQueue::default(),
            events: VecDeque::new(),
            rtt: Duration::ZERO,
            states: None,
            config,
        }
    }

    /// Applies the limits of the peer: those that a client remembers for 0-RTT, then those of the
    /// handshake.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if a limit is below one given before (RFC 9000, section 7.4.1); after
    /// [`on_zero_rtt_rejected`](Self::on_zero_rtt_rejected) any limit is accepted.
    pub(crate) fn set_peer_limits(&mut self, limits: &PeerLimits) -> Result<(), TransportError> {
        if !limits.permits_all_of(&self.peer) {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a limit is below the one remembered for 0-RTT",
            ));
        }
        self.peer = *limits;
        for (&id, stream) in &mut self.table {
            let maximum = initial_credit(limits, self.config.side, id);
            if let Some(send) = &mut stream.send {
                send.on_max_stream_data(maximum);
                wait_for_memory(&mut self.waiting_writers, id, send);
            }
        }
        self.credit.raise(limits.max_data);
        self.ready.all = true;
        self.permit_streams(Dir::Bi, limits.max_streams_bidi);
        self.permit_streams(Dir::Uni, limits.max_streams_uni);
        self.wake_writers();
        Ok(())
    }

    /// Applies the peer's limit of `max` streams.
    fn permit_streams(&mut self, dir: Dir, max: u64) {
        let permitted_before = self.ids.max_local(dir);
        if max > permitted_before {
            self.control.streams_blocked[dir as usize] = false;
        }
        if self.ids.on_max_streams(dir, max) {
            self.events.push_back(StreamEvent::Available(dir));
        }
        // Only streams opened in rejected 0-RTT are open without being permitted.
        for index in permitted_before..self.ids.opened(dir).min(max) {
            let id = StreamId::new(self.config.side, dir, index);
            let Some(stream) = self.table.get(&id) else {
                continue;
            };
            let reset = stream.send.as_ref().is_some_and(SendPart::is_reset);
            let stopped = stream.recv.as_ref().is_some_and(|r| r.stopped().is_some());
            self.ready.all = true;
            if reset {
                self.make_due(id, ControlFrame::ResetStream);
            }
            if stopped {
                self.make_due(id, ControlFrame::StopSending);
            }
        }
    }

    /// Handles rejected 0-RTT: all sent data is due again from the start.
    ///
    /// No limit applies until [`set_peer_limits`](Self::set_peer_limits) gives those of the handshake.
    pub(crate) fn on_zero_rtt_rejected(&mut self) {
        self.peer = PeerLimits::default();
        self.credit = SendCredit::default();
        self.ids.forget_limits();
        for stream in self.table.values_mut() {
            self.control.forget(stream);
            if let Some(send) = &mut stream.send {
                send.on_zero_rtt_rejected();
            }
        }
        if self.states.is_some() {
            let mut ids: Vec<StreamId> = self.table.keys().copied().collect();
            ids.sort_unstable();
            for id in ids {
                self.note_states(id);
            }
        }
        self.control.data_blocked = false;
        self.control.streams_blocked = [false; 2];
        self.ready.all = true;
    }

    /// Sets the smoothed round-trip time, used to tune receive windows.
    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// The next notification for the application.
    pub(crate) fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Whether either end ever opened a bidirectional stream.
    pub(crate) fn had_bidirectional(&self) -> bool {
        self.ids.had_any(Dir::Bi)
    }

    /// Server: whether the client has no bidirectional stream open, and nothing is to be delivered to it.
    pub(crate) fn is_idle_server(&self) -> bool {
        !self.ids.has_remote(Dir::Bi) && self.buffer.held() == 0
    }

    /// Whether no stream exists.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.table.is_empty()
    }

    /// The statistics at present.
    pub(crate) fn stats(&self) -> StreamsStats {
        StreamsStats {
            open: self.table.len(),
            bytes_sent: self.credit.sent,
            bytes_retransmitted: self.retransmitted,
            bytes_received: self.received,
            bytes_held: self.buffer.held(),
            out_of_order: self.out_of_order,
        }
    }

    /// Bytes buffered because earlier ones are missing, over all streams.
    pub(crate) fn out_of_order_bytes(&self) -> u64 {
        self.out_of_order.bytes
    }

    /// Bytes of a stream buffered because earlier ones are missing; 0 if it does not receive.
    pub(crate) fn out_of_order_bytes_of(&self, id: StreamId) -> u64 {
        let recv = self.table.get(&id).and_then(|stream| stream.recv.as_ref());
        recv.map_or(0, RecvPart::out_of_order)
    }

    /// Received bytes in memory, on all streams.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn buffered(&self) -> usize {
        let parts = self
            .table
            .values()
            .filter_map(|stream| stream.recv.as_ref());
        parts.map(RecvPart::buffered).sum()
    }

    /// Adds the stream to the table with the parts of its kind.
    fn create(&mut self, id: StreamId) {
        let local = self.ids.is_local(id);
        let send = (local || id.dir() == Dir::Bi)
            .then(|| SendPart::new(initial_credit(&self.peer, self.config.side, id)));
        let recv = (!local || id.dir() == Dir::Bi).then(|| {
            RecvPart::new(ReceiveWindow::new(
                self.config.stream_receive_window,
                self.config.max_stream_receive_window,
            ))
        });
        let stream = Stream {
            send,
            recv,
            due: DueFrames::default(),
            readiness: Readiness::default(),
        };
        self.table.insert(id, Box::new(stream));
        self.note_states(id);
    }

    /// Drops the parts in a terminal state, and the stream with the last of them.
    fn reap(&mut self, id: StreamId) {
        self.note_states(id);
        let Some(stream) = self.table.get_mut(&id) else {
            return;
        };
        if stream.send.as_ref().is_some_and(SendPart::is_terminal) {
            stream.send = None;
            self.control.clear(stream, ControlFrame::ResetStream);
            self.control.clear(stream, ControlFrame::StreamDataBlocked);
        }
        if stream.recv.as_ref().is_some_and(RecvPart::is_terminal) {
            stream.recv = None;
            self.control.clear(stream, ControlFrame::StopSending);
            self.control.clear(stream, ControlFrame::MaxStreamData);
        }
        if stream.send.is_none() && stream.recv.is_none() {
            self.ready.forget(id, stream);
            self.control.forget(stream);
            self.table.remove(&id);
            if let Some(states) = &mut self.states {
                states.forget(id);
            }
            if self.ids.on_closed(id) {
                self.control.max_streams[id.dir() as usize] = true;
            }
        }
    }

    /// Checks whether the stream has become ready or unready.
    fn check_ready(&mut self, id: StreamId) {
        if let Some(stream) = self.table.get_mut(&id) {
            let permitted = self.ids.is_permitted(id);
            let (credit, control) = (&mut self.credit, &mut self.control);
            self.ready.check(id, stream, permitted, credit, control);
        }
    }

    /// Notifies writers that wait for memory, once enough is free.
    fn wake_writers(&mut self) {
        if self.waiting_writers.is_empty() || !self.buffer.has_worthwhile_room() {
            return;
        }
        for id in self.waiting_writers.drain(..) {
            let Some(send) = self.table.get_mut(&id).and_then(|s| s.send.as_mut()) else {
                continue;
            };
            send.waits_for_memory = false;
            if send.write_blocked && send.credit().is_ok_and(|credit| credit > 0) {
                send.write_blocked = false;
                self.events.push_back(StreamEvent::Writable(id));
            }
        }
    }
}

/// Queues a stream whose last write was blocked by memory, unless it is queued already.
fn wait_for_memory(waiting: &mut VecDeque<StreamId>, id: StreamId, send: &mut SendPart) {
    if send.write_blocked && !send.waits_for_memory {
        send.waits_for_memory = true;
        waiting.push_back(id);
    }
}

/// The peer's initial limit for stream `id`, in bytes.
fn initial_credit(limits: &PeerLimits, side: Side, id: StreamId) -> u64 {
    match id.dir() {
        Dir::Uni => limits.max_stream_data_uni,
        Dir::Bi if id.initiator() == side => limits.max_stream_data_bidi_remote,
        Dir::Bi => limits.max_stream_data_bidi_local,
    }
}
