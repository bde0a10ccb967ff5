//! Request streams: a message in each direction.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use marline::StreamId;
use marline_h3::{ErrorCode, SendError, StreamError, StreamEvent, frame};

use super::datagrams::Datagrams;
use super::error::RequestError;
use super::session::{Session, Step};
use super::transport::{BidiStream, QuicRecv, QuicSend, QuicTransport};
use super::transport_priority;

/// A request and its response.
pub(crate) struct RequestStream<C: QuicTransport> {
    pub(crate) sender: Sender<C>,
    pub(crate) receiver: Receiver<C>,
}

/// Keeps the state of a stream until both halves are dropped.
struct Registration<C: QuicTransport> {
    session: Session<C>,
    id: StreamId,
    /// The error in the message of the peer.
    failure: OnceLock<StreamError>,
}

impl<C: QuicTransport> Drop for Registration<C> {
    fn drop(&mut self) {
        self.session.with(|state| state.forget(self.id));
    }
}

impl<C: QuicTransport> RequestStream<C> {
    /// Opens a stream and sends the header of a request.
    ///
    /// # Errors
    /// The connection has ended or is about to, or the server accepts no such request.
    pub(crate) async fn open(
        session: &Session<C>,
        request: &Request<()>,
    ) -> Result<Self, RequestError> {
        if session.is_ending() {
            return Err(SendError::GoingAway.into());
        }
        let opened = poll_fn(|cx| session.transport().poll_open_bi(cx)).await;
        let opened = opened.map_err(|error| session.explain(error.into()))?;
        let mut stream = Self::new(session, opened, true);
        stream.begin(request).await?;
        Ok(stream)
    }

    /// Opens a stream for a request that [begins](Self::begin) later, if the server allows one more now.
    pub(crate) fn try_open(session: &Session<C>) -> Option<Self> {
        if session.is_ending() {
            return None;
        }
        let mut cx = Context::from_waker(Waker::noop());
        match session.transport().poll_open_bi(&mut cx) {
            Poll::Ready(Ok(opened)) => Some(Self::new(session, opened, true)),
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    /// Sends the header of a request on a stream of this end that is open. What is sent through a tunnel has the priority of the
    /// request.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) async fn begin(&mut self, request: &Request<()>) -> Result<(), RequestError> {
        if *request.method() == Method::CONNECT {
            self.sender.set_priority(marline_h3::Priority::of(request));
        }
        let id = self.sender.id();
        let session = &self.sender.registration.session;
        let header = session.with(|state| state.http3.encode_request(id, request))?;
        self.sender.write(header).await
    }

    /// A stream of this end, or of the peer.
    pub(super) fn new(session: &Session<C>, stream: BidiStream<C>, is_own: bool) -> Self {
        let registration = Arc::new(Registration {
            session: session.clone(),
            id: stream.send.id(),
            failure: OnceLock::new(),
        });
        Self {
            sender: Sender {
                registration: Arc::clone(&registration),
                stream: stream.send,
                is_ended: false,
                until_received: !is_own,
            },
            receiver: Receiver {
                registration,
                stream: stream.recv,
                is_ended: false,
                reads_first: false,
            },
        }
    }
}

/// Sends a message. Dropped before its end, it resets the stream.
pub(crate) struct Sender<C: QuicTransport> {
    registration: Arc<Registration<C>>,
    stream: C::Send,
    /// Whether nothing more will be written.
    is_ended: bool,
    /// Whether finishing waits until the peer has received everything. It does for responses, as their
    /// connection may be closed next; not for requests, whose response follows anyway.
    until_received: bool,
}

impl<C: QuicTransport> Sender<C> {
    /// The stream.
    pub(crate) fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Sets the priority of what is sent.
    pub(crate) fn set_priority(&self, priority: marline_h3::Priority) {
        let transport = self.registration.session.transport();
        transport.set_priority(self.id(), transport_priority(priority));
    }

    /// Sends the header of a response. If the request was found to be malformed, the stream is reset instead.
    ///
    /// # Errors
    /// The request was malformed, the client does not read the response, or the connection has ended.
    pub(crate) async fn send_response(
        &mut self,
        response: &Response<()>,
    ) -> Result<(), RequestError> {
        let header = self.encode_response(response)?;
        self.write(header).await
    }

    /// The same with all of its `content` and the end of the message, as one step if the peer accepts all of it now; otherwise only the
    /// header is sent. Returns whether the message has ended.
    ///
    /// # Errors
    /// As [`send_response`](Self::send_response).
    pub(crate) async fn send_whole(
        &mut self,
        response: &Response<()>,
        content: Bytes,
    ) -> Result<bool, RequestError> {
        let header = self.encode_response(response)?;
        let frame = match content.is_empty() {
            true => Bytes::new(),
            false => frame::data_header(content.len() as u64),
        };
        let sent = self
            .stream
            .try_finish_with([header.clone(), frame, content]);
        self.is_ended = sent.map_err(|error| self.registration.session.explain(error.into()))?;
        if !self.is_ended {
            self.write(header).await?;
        }
        Ok(self.is_ended)
    }

    fn encode_response(&mut self, response: &Response<()>) -> Result<Bytes, RequestError> {
        if let Some(&failure) = self.registration.failure.get() {
            self.reset(failure.code());
            return Err(failure.into());
        }
        let id = self.id();
        let session = &self.registration.session;
        Ok(session.with(|state| state.http3.encode_response(id, response))?)
    }

    /// Begins a DATA frame with `length` bytes of content, which [`write`](Self::write) sends.
    ///
    /// # Errors
    /// The peer does not read it, or the connection has ended.
    pub(crate) async fn begin_data(&mut self, length: usize) -> Result<(), RequestError> {
        self.write(frame::data_header(length as u64)).await
    }

    /// Sends trailers.
    ///
    /// # Errors
    /// The peer does not accept or read them, or the connection has ended.
    pub(crate) async fn send_trailers(&mut self, trailers: &HeaderMap) -> Result<(), RequestError> {
        let id = self.id();
        let section = self
            .registration
            .session
            .with(|state| state.http3.encode_trailers(id, trailers))?;
        self.write(section).await
    }

    /// Waits until content can be sent; returns how many bytes.
    ///
    /// # Errors
    /// The peer does not read it, or the connection has ended.
    pub(crate) async fn writable(&mut self) -> Result<usize, RequestError> {
        let room = poll_fn(|cx| self.stream.poll_writable(cx)).await;
        room.map_err(|error| self.registration.session.explain(error.into()))
    }

    /// Bytes that were sent, and that the peer has not acknowledged.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.stream.unacknowledged()
    }

    /// Writes all of `bytes` without copying them.
    ///
    /// # Errors
    /// The peer does not read them, or the connection has ended.
    pub(crate) async fn write(&mut self, mut bytes: Bytes) -> Result<(), RequestError> {
        let written = poll_fn(|cx| self.stream.poll_write(cx, &mut bytes)).await;
        written.map_err(|error| self.registration.session.explain(error.into()))
    }

    /// Ends the message. For a response, waits until the client has received everything.
    ///
    /// # Errors
    /// The client has stopped the stream, or the connection has ended.
    pub(crate) async fn finish(&mut self) -> Result<(), RequestError> {
        if !self.is_ended {
            self.stream.finish();
            self.is_ended = true;
        }
        if !self.until_received {
            return Ok(());
        }
        match poll_fn(|cx| self.stream.poll_stopped(cx)).await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(RequestError::abandoned(code)),
            Err(error) => Err(self.registration.session.explain(error.into())),
        }
    }

    /// Waits until the peer no longer reads it, or the connection has ended.
    pub(crate) async fn abandoned(&mut self) {
        let stopped = poll_fn(|cx| self.stream.poll_stopped(cx)).await;
        if matches!(stopped, Ok(None)) {
            std::future::pending::<()>().await;
        }
    }

    /// Abandons the message.
    pub(crate) fn reset(&mut self, code: ErrorCode) {
        self.is_ended = true;
        self.stream.reset(code.value());
    }
}

impl<C: QuicTransport> Drop for Sender<C> {
    fn drop(&mut self) {
        // The default of QUIC streams is the code 0, which HTTP/3 does not define.
        if !self.is_ended {
            self.stream.reset(ErrorCode::REQUEST_CANCELLED.value());
        }
    }
}

/// Receives a message. Dropped before its end, it stops the stream.
pub(crate) struct Receiver<C: QuicTransport> {
    registration: Arc<Registration<C>>,
    stream: C::Recv,
    /// Whether nothing more follows: the message is complete, or has failed.
    is_ended: bool,
    /// Whether nothing is left to report before more is read.
    reads_first: bool,
}

impl<C: QuicTransport> Receiver<C> {
    /// The next part of the message; `None` when it is complete.
    ///
    /// # Errors
    /// The message is malformed, was abandoned, or the connection has ended.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<StreamEvent>, RequestError>> {
        while !self.is_ended {
            let event = match self.poll_step(cx) {
                Step::Event { event, is_last } => {
                    self.reads_first = is_last;
                    event
                }
                Step::Read => {
                    self.reads_first = true;
                    continue;
                }
                Step::Wait => return Poll::Pending,
                Step::Over(error) => return Poll::Ready(Err(error)),
            };
            match event {
                StreamEvent::Finished => self.is_ended = true,
                StreamEvent::Reset(code) => {
                    self.is_ended = true;
                    return Poll::Ready(Err(RequestError::abandoned(code)));
                }
                StreamEvent::Failed(error) => {
                    // It fails once.
                    let _ = self.registration.failure.set(error);
                    self.stop(error.code());
                    return Poll::Ready(Err(error.into()));
                }
                event => return Poll::Ready(Ok(Some(event))),
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Reads if nothing is left to report, so that content takes the lock once for each chunk.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Step {
        let session = &self.registration.session;
        let id = self.stream.id();
        if !std::mem::take(&mut self.reads_first) {
            return session.with(|state| state.next_step(id, cx));
        }
        if let Poll::Ready(read) = self.stream.poll_read(cx) {
            return session.receive(id, read, cx);
        }
        match session.with(|state| state.next_step(id, cx)) {
            Step::Read => Step::Wait,
            step => step,
        }
    }

    /// The next part of the message; `None` when it is complete.
    ///
    /// # Errors
    /// As [`poll_next`](Self::poll_next).
    pub(crate) async fn next(&mut self) -> Result<Option<StreamEvent>, RequestError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The HTTP datagrams of the request from now on, if this end accepts any.
    pub(crate) fn datagrams(&self) -> Option<Datagrams> {
        let Registration { session, id, .. } = &*self.registration;
        session
            .takes_datagrams()
            .then(|| Datagrams::new(session, *id))
    }

    /// Reads no more, and asks the peer to send no more.
    pub(crate) fn stop(&mut self, code: ErrorCode) {
        self.is_ended = true;
        self.stream.stop(code.value());
        let id = self.stream.id();
        self.registration
            .session
            .with(|state| state.http3.stop_receiving(id));
    }
}

impl<C: QuicTransport> Drop for Receiver<C> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.stop(ErrorCode::REQUEST_CANCELLED);
        }
    }
}
