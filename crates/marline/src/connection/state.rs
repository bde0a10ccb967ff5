//! The state of a connection that its handles, its streams and the driver share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use marline_proto::{
    ConnectionError, ConnectionHandle, ErrorCode, Event, Instant, PathId, Side, StreamEvent,
    StreamId,
};
use rustc_hash::FxHashMap;
use tokio::sync::{broadcast, oneshot};

use super::events::ConnectionEvent;
use crate::runtime::{BoundSocket, Runtime, UdpSocket};
use crate::signal::Signal;
use crate::wakers::WakerList;

/// A connection as its handles, its streams and the driver share it.
pub(crate) struct SharedConnection {
    pub(crate) handle: ConnectionHandle,
    pub(crate) side: Side,
    runtime: Arc<dyn Runtime>,
    signal: Arc<Signal<Arc<Self>>>,
    state: Mutex<ConnectionState>,
    /// Connections, streams and attempts in the application's hands.
    handles: AtomicUsize,
}

/// The part of a connection's state that its mutex guards.
pub(crate) struct ConnectionState {
    pub(crate) proto: Box<marline_proto::Connection>,
    pub(crate) socket: Arc<dyn UdpSocket>,
    /// Client: where `socket` is bound. Server: where the endpoint's socket was bound at first.
    pub(crate) bound: SocketAddr,
    /// Whether packets may leave only from the path's own source address.
    pub(crate) is_pinned: bool,
    /// Whether the connection is in the driver's queue.
    pub(crate) queued: bool,
    /// Whether the driver has it among those that may be unreachable.
    pub(crate) is_unanswered: bool,
    /// Whether the only path was found unresponsive since the driver last looked.
    pub(crate) is_unresponsive: bool,
    pub(crate) connected: bool,
    pub(crate) confirmed: bool,
    /// The endpoint has removed the connection: its handle may name another one.
    pub(crate) drained: bool,
    pub(crate) error: Option<ConnectionError>,
    pub(crate) readers: FxHashMap<StreamId, Waker>,
    pub(crate) senders: FxHashMap<StreamId, Sender>,
    pub(crate) waiting: Waiting,
    /// The callers that wait for the validation of paths.
    pub(super) opening: FxHashMap<PathId, oneshot::Sender<Result<(), ErrorCode>>>,
    pub(crate) events: Option<broadcast::Sender<ConnectionEvent>>,
}

/// A [`SendStream`](crate::SendStream) in the application's hands.
#[derive(Default)]
pub(crate) struct Sender {
    pub(crate) writable: Option<Waker>,
    pub(crate) ended: Option<Waker>,
    pub(crate) end: Option<SendEnd>,
}

/// The peer's end of a stream that this side sends.
#[derive(Clone, Copy)]
pub(crate) enum SendEnd {
    Received,
    Stopped(u64),
}

/// Tasks that wait for the connection as a whole.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) connected: WakerList,
    pub(crate) confirmed: WakerList,
    pub(crate) closed: WakerList,
    pub(crate) accept: [WakerList; 2],
    pub(crate) open: [WakerList; 2],
    pub(crate) datagram_received: WakerList,
    pub(crate) datagram_writable: WakerList,
}

impl SharedConnection {
    pub(crate) fn new(
        proto: Box<marline_proto::Connection>,
        handle: ConnectionHandle,
        side: Side,
        socket: BoundSocket,
        runtime: Arc<dyn Runtime>,
        signal: Arc<Signal<Arc<Self>>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            handle,
            side,
            runtime,
            signal,
            state: Mutex::new(ConnectionState {
                proto,
                socket: socket.socket,
                bound: socket.local,
                is_pinned: false,
                queued: false,
                is_unanswered: false,
                is_unresponsive: false,
                connected: false,
                confirmed: false,
                drained: false,
                error: None,
                readers: FxHashMap::default(),
                senders: FxHashMap::default(),
                waiting: Waiting::default(),
                opening: FxHashMap::default(),
                events: None,
            }),
            handles: AtomicUsize::new(0),
        })
    }

    /// Ignores poisoning: a panic under the lock ends the driver, which closes every connection, and the
    /// state shows that.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Instant {
        self.runtime.now()
    }

    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Queues the connection for the driver: it may have something to send.
    pub(crate) fn touch(self: &Arc<Self>, state: &mut ConnectionState) {
        if !state.queued && !state.drained {
            state.queued = true;
            self.signal.push(Arc::clone(self));
        }
    }

    /// Closes the connection; the application's calls fail from now on.
    pub(crate) fn close(self: &Arc<Self>, code: u64, reason: &[u8]) {
        let mut woken = Vec::new();
        let mut state = self.lock();
        if state.error.is_none() {
            state.proto.close(self.now(), code, reason);
            state.terminate(ConnectionError::LocallyClosed, &mut woken);
            self.touch(&mut state);
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl ConnectionState {
    /// Passes events on to the application; the tasks to wake are added to `woken`.
    pub(crate) fn dispatch_events(&mut self, woken: &mut Vec<Waker>) {
        while let Some(event) = self.proto.poll_event() {
            match event {
                Event::Stream(event) => self.on_stream_event(event, woken),
                Event::DatagramReceived => self.waiting.datagram_received.take(woken),
                Event::DatagramsUnblocked => self.waiting.datagram_writable.take(woken),
                Event::Connected => {
                    self.connected = true;
                    self.waiting.connected.take(woken);
                    self.publish(ConnectionEvent::Connected);
                }
                Event::HandshakeConfirmed => {
                    self.confirmed = true;
                    self.waiting.confirmed.take(woken);
                    self.publish(ConnectionEvent::HandshakeConfirmed);
                }
                Event::ZeroRttRejected => self.publish(ConnectionEvent::EarlyDataRejected),
                Event::PathUnresponsive => self.is_unresponsive = true,
                Event::PathChanged => self.publish(ConnectionEvent::PathChanged),
                Event::PathOpened(id) => self.publish(ConnectionEvent::PathOpened(id)),
                Event::PathValidated(id) => {
                    self.end_opening(id, Ok(()));
                    self.publish(ConnectionEvent::PathValidated(id));
                }
                Event::PathClosed { id, error } => {
                    self.end_opening(id, Err(error));
                    self.publish(ConnectionEvent::PathClosed { id, error });
                }
                Event::PathStatus { id, status } => {
                    self.publish(ConnectionEvent::PathStatus { id, status });
                }
                Event::PathsAvailable => self.publish(ConnectionEvent::PathsAvailable),
                Event::Closed(error) => self.terminate(error, woken),
                _ => {}
            }
        }
    }

    fn on_stream_event(&mut self, event: StreamEvent, woken: &mut Vec<Waker>) {
        match event {
            StreamEvent::Opened(dir) => self.waiting.accept[dir as usize].take(woken),
            StreamEvent::Available(dir) => self.waiting.open[dir as usize].take(woken),
            StreamEvent::Readable(id) => woken.extend(self.readers.remove(&id)),
            StreamEvent::Writable(id) => {
                if let Some(sender) = self.senders.get_mut(&id) {
                    woken.extend(sender.writable.take());
                }
            }
            StreamEvent::Finished(id) => self.end_sender(id, SendEnd::Received, woken),
            StreamEvent::Stopped { id, error_code } => {
                self.end_sender(id, SendEnd::Stopped(error_code), woken);
            }
        }
    }

    fn end_sender(&mut self, id: StreamId, end: SendEnd, woken: &mut Vec<Waker>) {
        if let Some(sender) = self.senders.get_mut(&id) {
            sender.end.get_or_insert(end);
            woken.extend(sender.writable.take());
            woken.extend(sender.ended.take());
        }
    }

    fn end_opening(&mut self, id: PathId, outcome: Result<(), ErrorCode>) {
        if let Some(waiting) = self.opening.remove(&id) {
            // Fails if the caller no longer waits.
            waiting.send(outcome).ok();
        }
    }

    /// Ends everything with `error`, unless it ended before.
    pub(crate) fn terminate(&mut self, error: ConnectionError, woken: &mut Vec<Waker>) {
        if self.error.is_some() {
            return;
        }
        self.publish(ConnectionEvent::Closed(error.clone()));
        self.events = None;
        self.error = Some(error);
        self.opening.clear();
        woken.extend(self.readers.drain().map(|(_, waker)| waker));
        for sender in self.senders.values_mut() {
            woken.extend(sender.writable.take());
            woken.extend(sender.ended.take());
        }
        let Waiting {
            connected,
            confirmed,
            closed,
            accept,
            open,
            datagram_received,
            datagram_writable,
        } = &mut self.waiting;
        for list in [
            connected,
            confirmed,
            closed,
            datagram_received,
            datagram_writable,
        ]
        .into_iter()
        .chain(accept)
        .chain(open)
        {
            list.take(woken);
        }
    }

    fn publish(&self, event: ConnectionEvent) {
        if let Some(events) = &self.events {
            // Fails if there is no receiver any more.
            events.send(event).ok();
        }
    }
}

/// A counted reference: the connection closes with code 0 when the application drops the last one.
pub(crate) struct ConnectionRef(Arc<SharedConnection>);

impl ConnectionRef {
    pub(crate) fn new(shared: Arc<SharedConnection>) -> Self {
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }

    /// One more reference, unless the last has been dropped.
    pub(super) fn another(shared: &Arc<SharedConnection>) -> Option<Self> {
        let more = |handles: usize| (handles > 0).then_some(handles + 1);
        shared
            .handles
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more)
            .ok()?;
        Some(Self(Arc::clone(shared)))
    }
}

impl Clone for ConnectionRef {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.close(0, b"");
        }
    }
}

impl std::ops::Deref for ConnectionRef {
    type Target = Arc<SharedConnection>;

    fn deref(&self) -> &Arc<SharedConnection> {
        &self.0
    }
}
