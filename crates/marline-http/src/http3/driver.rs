//! The parts of an HTTP/3 connection other than its requests: control and QPACK streams, and accepting streams.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use marline::{ConnectionError, ReadError};
use marline_h3::datagram::Datagram;
use marline_h3::{Config, Error, ErrorCode, Event, LocalStream, Side, Transmit};

use super::error::RequestError;
use super::request::RequestStream;
use super::session::{Session, State};
use super::transport::{QuicRecv, QuicSend, QuicTransport};
use super::transport_priority;
use super::woken::Woken;
use crate::limits;

/// A connection that begins: its session, and the driver, which must be polled.
pub(crate) struct Begun<C: QuicTransport> {
    pub(crate) session: Session<C>,
    pub(crate) driver: Driver<C>,
}

impl<C: QuicTransport> Begun<C> {
    /// Begins HTTP/3 on a connection.
    pub(crate) fn on(transport: C, side: Side, config: &Config) -> Self {
        let session = Session::new(transport, side, config);
        Self {
            driver: Driver::new(session.passive()),
            session,
        }
    }
}

/// Drives a connection: must be polled as long as it is used.
pub(crate) struct Driver<C: QuicTransport> {
    session: Session<C>,
    /// This end's unidirectional streams, by number.
    own: [Option<C::Send>; LocalStream::ALL.len()],
    /// The bytes to write next, and their stream.
    writing: Option<Transmit>,
    /// The peer's unidirectional streams.
    peers: Vec<C::Recv>,
    /// Whether anything but a request may have arrived, or may be sent: most polls are about requests.
    control: Woken,
}

/// The connection has ended; its requests return the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended;

impl<C: QuicTransport> Driver<C> {
    /// Writes the first bytes of the connection, as far as that is possible at once.
    fn new(session: Session<C>) -> Self {
        let mut driver = Self {
            session,
            own: [const { None }; LocalStream::ALL.len()],
            writing: None,
            peers: Vec::new(),
            control: Woken::new(),
        };
        driver.session.with(|_| ());
        let _ = driver.poll_send(&mut Context::from_waker(Waker::noop()));
        driver
    }

    /// Runs until the connection ends.
    pub(crate) async fn run(mut self) {
        // Clients accept no requests.
        while self.accept().await.is_ok() {}
    }

    /// Drives the connection until a request arrives. Safe to cancel.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) async fn accept(&mut self) -> Result<RequestStream<C>, Ended> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Result<RequestStream<C>, Ended>> {
        match self.poll_step(cx) {
            Ok(Some(request)) => Poll::Ready(Ok(request)),
            Ok(None) => Poll::Pending,
            Err(failure) => {
                match failure {
                    Failure::Protocol(error) => self.session.fail(error),
                    Failure::Lost(error) => self.session.end(error.into()),
                }
                Poll::Ready(Err(Ended))
            }
        }
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Result<Option<RequestStream<C>>, Failure> {
        if let Some(waker) = self.control.take(cx.waker()) {
            self.poll_control(&mut Context::from_waker(&waker))?;
        }
        let Poll::Ready(accepted) = self.session.transport().poll_accept_bi(cx) else {
            return Ok(None);
        };
        let stream = accepted?;
        let id = stream.recv.id();
        match self.session.side() {
            Side::Server => self.session.with(|state| state.http3.on_request_stream(id)),
            // It is an error, which the connection knows.
            Side::Client => self
                .session
                .with(|state| state.http3.on_stream_data(id, Bytes::new(), false))?,
        }
        Ok(Some(RequestStream::new(&self.session, stream, false)))
    }

    /// Does everything but accepting requests; the waker of `cx` is called when there is more of it.
    fn poll_control(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        self.session.with(|state| state.set_driver(cx));
        while let Poll::Ready(recv) = self.session.transport().poll_accept_uni(cx) {
            self.peers.push(recv?);
        }
        self.poll_peers(cx)?;
        self.poll_send(cx)?;
        self.poll_stopped(cx)?;
        self.poll_datagrams(cx)
    }

    /// Reads the peer's unidirectional streams.
    fn poll_peers(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let mut index = 0;
        while index < self.peers.len() {
            match read_all(&self.session, &mut self.peers[index], cx)? {
                Reading::Open => index += 1,
                Reading::Ended => drop(self.peers.swap_remove(index)),
            }
        }
        // Afterwards, as it may remove streams: each must have been read until nothing was left.
        self.on_events()
    }

    fn on_events(&mut self) -> Result<(), Failure> {
        let events: VecDeque<_> = self
            .session
            .with(|state| std::iter::from_fn(|| state.http3.poll_event()).collect());
        for event in events {
            match event {
                // RFC 9297, section 2.1.1. QUIC knows the peer's limit before its streams.
                Event::Settings(settings)
                    if settings.h3_datagram
                        && self.session.transport().max_datagram_len().is_none() =>
                {
                    let error = Error::new(
                        ErrorCode::SETTINGS_ERROR,
                        "SETTINGS_H3_DATAGRAM without the transport parameter max_datagram_frame_size",
                    );
                    return Err(error.into());
                }
                Event::Readable(id) => {
                    let reader = self.session.with(|state| state.take_reader(id));
                    reader.into_iter().for_each(Waker::wake);
                }
                Event::Priority { stream, priority } => {
                    let priority = transport_priority(priority);
                    self.session.transport().set_priority(stream, priority);
                }
                Event::UnknownStream(id) => {
                    let position = self.peers.iter().position(|peer| peer.id() == id);
                    if let Some(index) = position {
                        let mut peer = self.peers.swap_remove(index);
                        peer.stop(ErrorCode::STREAM_CREATION_ERROR.value());
                        self.session.with(|state| state.forget(id));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes on this end's unidirectional streams; pending until all is written.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        loop {
            let next = self.writing.take();
            let next = next.or_else(|| self.session.with(State::take_transmit));
            let Some(transmit) = next else {
                return Ok(());
            };
            let Transmit { stream, bytes } = self.writing.insert(transmit);
            let own = &mut self.own[*stream as usize];
            let own = match own {
                Some(own) => own,
                None => match self.session.transport().poll_open_uni(cx) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(opened) => own.insert(opened?),
                },
            };
            match own.poll_write(cx, bytes) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(())) => self.writing = None,
                // The peer stopped the stream, which is noticed there, or the connection ended.
                Poll::Ready(Err(_)) => {
                    self.writing = None;
                    return Ok(());
                }
            }
        }
    }

    /// Gives HTTP datagrams that have arrived to their requests. Those of requests that are not known, or have ended, are
    /// dropped (RFC 9297, section 2.1).
    fn poll_datagrams(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        if !self.session.takes_datagrams() {
            return Ok(());
        }
        for _ in 0..limits::DATAGRAMS_AT_ONCE {
            let Poll::Ready(datagram) = self.session.transport().poll_recv_datagram(cx) else {
                return Ok(());
            };
            let Datagram { stream, payload } = Datagram::decode(datagram?)?;
            let receiving = self.session.with(|state| state.datagrams_of(stream));
            if let Some(received) = receiving.and_then(|receiving| receiving.upgrade()) {
                received.push(payload);
            }
        }
        // Others of the connection have their turn first.
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Checks that the peer has stopped none of this end's streams.
    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        for own in self.own.iter_mut().flatten() {
            if let Poll::Ready(stopped) = own.poll_stopped(cx)
                && stopped?.is_some()
            {
                let id = own.id();
                self.session.with(|state| state.http3.on_stop_sending(id))?;
            }
        }
        Ok(())
    }
}

impl<C: QuicTransport> Drop for Driver<C> {
    fn drop(&mut self) {
        // Without the driver, requests would wait forever.
        self.session.end(RequestError::Closed);
    }
}

/// The reason why a driver ends.
enum Failure {
    /// The peer violated the protocol.
    Protocol(Error),
    /// The connection was lost or closed.
    Lost(ConnectionError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Protocol(error)
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        Self::Lost(error)
    }
}

/// Whether a stream of the peer continues.
enum Reading {
    Open,
    Ended,
}

/// Gives all bytes of a stream that have arrived to the connection.
fn read_all<C: QuicTransport>(
    session: &Session<C>,
    recv: &mut C::Recv,
    cx: &mut Context<'_>,
) -> Result<Reading, Failure> {
    let id = recv.id();
    loop {
        let Poll::Ready(read) = recv.poll_read(cx) else {
            return Ok(Reading::Open);
        };
        session.with(|state| state.on_read(&read))?;
        let bytes = match read {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                session.with(|state| state.http3.on_stream_data(id, Bytes::new(), true))?;
                return Ok(Reading::Ended);
            }
            Err(ReadError::Reset(code)) => {
                session.with(|state| state.http3.on_reset(id, code))?;
                return Ok(Reading::Ended);
            }
            // The connection has ended, which the driver notices there.
            Err(_) => return Ok(Reading::Ended),
        };
        session.with(|state| state.http3.on_stream_data(id, bytes, false))?;
    }
}
