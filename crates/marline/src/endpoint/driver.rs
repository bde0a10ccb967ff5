//! The one task of an endpoint: receives, runs timers, sends.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use marline_proto::coordination::bundle::MemberDirective;
use marline_proto::{ConnectionError, EndpointEvent, EndpointFailure, Instant, Side};

use super::can_send_from;
use super::deliver::Delivery;
use super::inbox::Passed;
use super::incoming::ReceiveBuffers;
use super::outgoing::{OutgoingBatch, RefusedDatagram};
use super::state::SharedEndpoint;
use super::timers::Timers;
use super::unanswered::Unanswered;
use crate::connection::{ConnectionState, SharedConnection};
use crate::runtime::{BoundSocket, Timer, UdpSocket, UnreachableReport};

/// Rounds of receiving and sending before the task yields to others of the thread.
const ROUNDS: usize = 16;

/// Batches sent before the socket is read again, because acknowledgments change the windows.
const BATCHES: usize = 8;

/// Reports of unreachable destinations taken before the socket is read again.
const REPORTS: usize = 64;

/// Drives an endpoint until it has no handles and no connections left.
pub(super) struct Driver {
    shared: Arc<SharedEndpoint>,
    socket: Arc<dyn UdpSocket>,
    local: SocketAddr,
    /// The socket before [`Endpoint::rebind`](super::Endpoint::rebind), in use until the new one works.
    previous: Option<BoundSocket>,
    incoming: ReceiveBuffers,
    /// Whether the socket may have been read since waiters were last notified that reading has stopped.
    is_receiving: bool,
    /// Datagrams that others have received.
    passed: VecDeque<Passed>,
    outgoing: OutgoingBatch,
    /// A datagram of the endpoint itself: Retry, Version Negotiation, Stateless Reset, a refusal.
    reply: Vec<u8>,
    /// Connections to process.
    queue: VecDeque<Arc<SharedConnection>>,
    unanswered: Unanswered,
    timers: Timers,
    timer: Box<dyn Timer>,
    /// The deadline that `timer` is set to.
    timer_deadline: Option<Instant>,
    /// The error with which the connections end if the task ends now.
    end: ConnectionError,
    // Kept for their capacity.
    woken: Vec<Waker>,
    endpoint_events: Vec<EndpointEvent>,
}

impl Driver {
    pub(super) fn new(shared: Arc<SharedEndpoint>) -> Self {
        let timer = shared.runtime.timer();
        let (socket, local, is_receiving) = {
            let state = shared.lock();
            (Arc::clone(&state.socket), state.local, state.is_receiving)
        };
        Self {
            is_receiving,
            shared,
            socket,
            local,
            previous: None,
            incoming: ReceiveBuffers::new(),
            passed: VecDeque::new(),
            outgoing: OutgoingBatch::default(),
            reply: Vec::new(),
            queue: VecDeque::new(),
            unanswered: Unanswered::default(),
            timers: Timers::default(),
            timer,
            timer_deadline: None,
            end: ConnectionError::EndpointFailed(EndpointFailure::TaskEnded),
            woken: Vec::new(),
            endpoint_events: Vec::new(),
        }
    }

    /// Adopts a new socket, if there is one.
    fn adopt_socket(&mut self) {
        let state = self.shared.lock();
        if !Arc::ptr_eq(&state.socket, &self.socket) {
            let old = std::mem::replace(&mut self.socket, Arc::clone(&state.socket));
            self.previous = Some(BoundSocket {
                socket: old,
                local: self.local,
            });
            self.local = state.local;
            self.unanswered.watch(&*self.socket);
        }
    }

    /// Ends connections to destinations that the network reports as unreachable; false if there was
    /// none.
    fn end_unreachable(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        for _ in 0..REPORTS {
            let Poll::Ready(report) = self.unanswered.poll(cx, &*self.socket) else {
                break;
            };
            progress = true;
            self.end_one(&report);
        }
        progress
    }

    /// Ends the connection that `report` is about, if there is one.
    fn end_one(&mut self, report: &UnreachableReport) {
        let now = self.shared.runtime.now();
        if let Some(connection) = self.unanswered.end(now, report) {
            enqueue(&mut self.queue, connection, &mut connection.lock());
        }
    }

    /// Reports a datagram that exceeds the MTU of its interface to its connection.
    fn shrink(&mut self, refused: RefusedDatagram) {
        let now = self.shared.runtime.now();
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        if let Some(connection) = state.connection(refused.connection) {
            let mut inner = connection.lock();
            inner
                .proto
                .on_datagram_refused(now, refused.tuple, refused.size);
            enqueue(&mut self.queue, connection, &mut inner);
        }
    }

    /// Passes one batch of datagrams to their connections; false if there was none.
    fn receive(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if let Some(BoundSocket { socket, local }) = self.previous.clone() {
            match self.incoming.poll_fill(cx, &*socket) {
                Poll::Ready(Ok(filled)) => self.deliver(filled, local),
                Poll::Ready(Err(_)) => self.previous = None,
                Poll::Pending => {}
            }
        }
        if !self.shared.reads_socket() {
            if std::mem::take(&mut self.is_receiving) {
                self.shared.lock().on_stopped_receiving(&mut self.woken);
                self.wake();
            }
            return Ok(false);
        }
        self.is_receiving = true;
        match self.incoming.poll_fill(cx, &*self.socket) {
            Poll::Ready(Ok(filled)) => {
                self.previous = None;
                self.deliver(filled, self.local);
                Ok(true)
            }
            // An ICMP error about an earlier datagram; the socket still works.
            Poll::Ready(Err(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Ok(false),
        }
    }

    fn deliver(&mut self, filled: usize, local: SocketAddr) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let mut delivery = Delivery {
            shared: &shared,
            state: &mut state,
            queue: &mut self.queue,
            reply: &mut self.reply,
            woken: &mut self.woken,
            socket: &*self.socket,
            now: shared.runtime.now(),
            unix_time_s: shared.runtime.unix_time().as_secs(),
        };
        for datagram in self.incoming.datagrams(filled, local) {
            delivery.deliver(datagram);
        }
        drop(state);
        self.wake();
    }

    /// Passes the datagrams that other endpoints have received to their connections, and follows the orders of other
    /// workers; false if there was nothing.
    fn receive_passed(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let has_orders = shared.inbox.take_orders();
        let is_filled = shared.inbox.take(&mut self.passed);
        if !has_orders && !is_filled {
            return false;
        }
        let mut state = shared.lock();
        let now = shared.runtime.now();
        state.follow_orders(now, &mut self.queue);
        let mut delivery = Delivery {
            shared: &shared,
            state: &mut state,
            queue: &mut self.queue,
            reply: &mut self.reply,
            woken: &mut self.woken,
            socket: &*self.socket,
            now,
            unix_time_s: shared.runtime.unix_time().as_secs(),
        };
        for datagram in self.passed.drain(..) {
            delivery.deliver_passed(datagram);
        }
        drop(state);
        self.wake();
        true
    }

    /// Runs the timers that are due; false if none was.
    fn expire(&mut self) -> bool {
        let now = self.shared.runtime.now();
        if self.timers.next().is_none_or(|next| next > now) {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        while let Some(handle) = self.timers.pop(now) {
            if let Some(connection) = state.connection(handle) {
                let mut inner = connection.lock();
                if inner.proto.poll_timeout().is_some_and(|at| at <= now) {
                    inner.proto.handle_timeout(now);
                }
                enqueue(&mut self.queue, connection, &mut inner);
            }
        }
        true
    }

    /// Sends for the queued connections in turn, one batch each; false if there was nothing to do.
    fn transmit(&mut self, cx: &mut Context<'_>) -> bool {
        self.shared.signal.take(&mut self.queue);
        let mut progress = false;
        for _ in 0..BATCHES {
            if self.outgoing.poll_flush(cx).is_pending() {
                return progress;
            }
            if self.outgoing.take_network_lost() {
                self.shared.notify_watch();
            }
            if let Some(report) = self.outgoing.take_unroutable() {
                self.end_one(&report);
            }
            if let Some(refused) = self.outgoing.take_refused() {
                self.shrink(refused);
            }
            let Some(connection) = self.queue.pop_front() else {
                self.report_all_sent();
                return progress;
            };
            progress = true;
            self.process(&connection);
        }
        progress
    }

    /// Wakes the callers that wait until all CONNECTION_CLOSE are sent.
    fn report_all_sent(&mut self) {
        if self.shared.awaits_close_sent.load(Ordering::Acquire) {
            self.shared.lock().on_all_sent(&mut self.woken);
            self.wake();
        }
    }

    /// Takes one batch to send and all events from a connection, and updates its timer.
    fn process(&mut self, connection: &Arc<SharedConnection>) {
        let handle = connection.handle;
        let now = self.shared.runtime.now();
        let mut state = connection.lock();
        state.queued = false;
        if state.drained {
            return;
        }
        self.outgoing.buffer.clear();
        let most = OutgoingBatch::max_datagrams(&*state.socket);
        let batch = state
            .proto
            .poll_transmit(now, most, &mut self.outgoing.buffer);
        let socket =
            batch.and_then(|batch| self.socket_of(connection.side, &state, batch.tuple.local));
        if let (Some(batch), None) = (batch, &socket) {
            let bound = state.bound;
            state.proto.leave_address(now, batch.tuple.local, bound);
        }
        state.dispatch_events(&mut self.woken);
        while let Some(event) = state.proto.poll_endpoint_event() {
            state.drained |= matches!(event, EndpointEvent::Drained);
            self.endpoint_events.push(event);
        }
        if state.drained {
            self.timers.remove(handle);
        } else {
            match state.proto.poll_timeout() {
                Some(end) if state.proto.is_closed() => self.timers.update_closed(handle, end),
                deadline => self.timers.update(handle, deadline),
            }
            if batch.is_some() {
                enqueue(&mut self.queue, connection, &mut state);
            }
        }
        self.unanswered
            .update(connection, &mut state, &*self.socket);
        let drained = state.drained;
        let is_former = |socket: &Arc<dyn UdpSocket>| !Arc::ptr_eq(socket, &state.socket);
        let is_pinned = state.is_pinned
            || state.proto.is_multipath()
            || self.shared.is_watched()
            || socket.as_ref().is_some_and(is_former);
        let is_unresponsive = std::mem::take(&mut state.is_unresponsive);
        drop(state);
        if is_unresponsive {
            self.shared.notify_watch();
        }
        if let (Some(batch), Some(socket)) = (batch, socket) {
            self.outgoing.start(handle, batch, socket, is_pinned);
        }
        if !self.endpoint_events.is_empty() {
            let shared = Arc::clone(&self.shared);
            let mut endpoint = shared.lock();
            for event in self.endpoint_events.drain(..) {
                match event {
                    EndpointEvent::Bundle(signal) => endpoint.coordinate(now, handle, signal),
                    event => endpoint.proto.on_connection_event(handle, event),
                }
                endpoint.follow_orders(now, &mut self.queue);
                while let Some(MemberDirective { member, directive }) =
                    endpoint.proto.poll_directive()
                {
                    if let Some(member) = endpoint.connection(member) {
                        let mut state = member.lock();
                        state.proto.apply_directive(now, &directive);
                        enqueue(&mut self.queue, member, &mut state);
                    }
                }
            }
            if drained {
                endpoint.forget(handle, &mut self.woken);
            }
            shared.wake_ordered(&mut endpoint);
        }
        self.wake();
    }

    /// The socket for a batch from `local`; `None` if it is of a former address of a client, whose socket is closed. Such
    /// a batch carries the connection ID of that address, which no other may send (RFC 9000, section 9.5).
    fn socket_of(
        &self,
        side: Side,
        state: &ConnectionState,
        local: SocketAddr,
    ) -> Option<Arc<dyn UdpSocket>> {
        let sends =
            |bound: SocketAddr| bound.port() == local.port() && can_send_from(bound, local.ip());
        if side.is_server() || sends(state.bound) {
            return Some(Arc::clone(&state.socket));
        }
        // This task may not have adopted the new socket yet.
        if sends(self.local) {
            return Some(Arc::clone(&self.socket));
        }
        let previous = self.previous.as_ref()?;
        sends(previous.local).then(|| Arc::clone(&previous.socket))
    }

    fn wake(&mut self) {
        self.woken.drain(..).for_each(Waker::wake);
    }

    /// Sets the timer for the next deadline; true if that has passed already.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(next) = self.timers.next() else {
            return false;
        };
        // A later deadline does not set the timer anew: expiring once too early costs less than setting
        // it for every packet.
        if self.timer_deadline.is_none_or(|set| next < set) {
            self.timer.set(next);
            self.timer_deadline = Some(next);
        }
        if self.timer.poll(cx).is_ready() {
            self.timer_deadline = None;
            return true;
        }
        false
    }

    fn is_done(&self) -> bool {
        self.shared.handles.load(Ordering::Acquire) == 0 && self.shared.lock().is_idle()
    }
}

/// Queues `connection` unless it is queued already.
pub(super) fn enqueue(
    queue: &mut VecDeque<Arc<SharedConnection>>,
    connection: &Arc<SharedConnection>,
    state: &mut ConnectionState,
) {
    if !state.queued {
        state.queued = true;
        queue.push_back(Arc::clone(connection));
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        // A driver that is dropped while it is polled has panicked.
        driver.end = ConnectionError::EndpointFailed(EndpointFailure::Panicked);
        let polled = driver.drive(cx);
        driver.end = match polled {
            Poll::Ready(Ok(())) => ConnectionError::LocallyClosed,
            Poll::Ready(Err(_)) => ConnectionError::EndpointFailed(EndpointFailure::Socket),
            Poll::Pending => ConnectionError::EndpointFailed(EndpointFailure::TaskEnded),
        };
        polled.map(|_| ())
    }
}

impl Driver {
    /// Runs until there is nothing to do for now; ready when there never will be again, or with an
    /// error of the socket.
    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.adopt_socket();
        for _ in 0..ROUNDS {
            let received = match self.receive(cx) {
                Ok(received) => received,
                Err(error) => return Poll::Ready(Err(error)),
            };
            let passed = self.receive_passed();
            let ended = self.end_unreachable(cx);
            let expired = self.expire();
            let sent = self.transmit(cx);
            if received || passed || ended || expired || sent {
                continue;
            }
            if self.is_done() {
                return Poll::Ready(Ok(()));
            }
            if !self.poll_timer(cx) {
                if self.shared.signal.sleep(cx.waker()) {
                    return Poll::Pending;
                }
                self.adopt_socket();
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let mut woken = Vec::new();
        let queue = {
            let mut state = self.shared.lock();
            state.on_driver_ended(&self.end, &mut woken);
            std::mem::take(&mut state.accepted)
        };
        drop(queue);
        self.shared.signal.close();
        self.shared.notify_watch();
        woken.into_iter().for_each(Waker::wake);
    }
}
