//! The API of the application.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use marline_wire::{ConnectionId, Dir, PathId, Side, StreamId};
use rustls::pki_types::CertificateDer;

use super::Connection;
use super::events::{ConnectionError, EndpointEvent, Event};
use crate::datagrams::{DatagramError, DatagramPath};
use crate::level::EncryptionLevel;
use crate::observe::events::{KeyKind, KeyTrigger};
use crate::paths::{Path, Slot};
use crate::priority::Priority;
use crate::streams::{ClosedStream, FinishError, ReadError, WriteError};
use crate::time::Instant;

impl Connection {
    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        let of_paths = self.paths.iter_mut().map(|path| &mut path.datagrams);
        // All of them, as the application retries all.
        let unblocked = of_paths.fold(self.datagrams.take_unblocked(), |any, queue| {
            queue.take_unblocked() || any
        });
        if unblocked {
            return Some(Event::DatagramsUnblocked);
        }
        self.events.application.pop_front()
    }

    /// Whether [`Self::poll_transmit`] may have something to send, such as flow control credit after a read.
    pub fn wants_transmit(&self) -> bool {
        !self.lifecycle.is_open() || self.paths.slots().any(|at| self.has_waiting(at))
    }

    /// The next event for the endpoint, for [`crate::Endpoint::on_connection_event`].
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        if let Some(event) = self.events.endpoint.pop_front() {
            return Some(event);
        }
        let may_be_idle = self.side.is_server()
            && self.lifecycle.is_open()
            && self.establishment.progress().is_complete();
        let is_idle = may_be_idle && self.streams.is_idle_server();
        let is_news = std::mem::replace(&mut self.events.reported_idle, is_idle) != is_idle;
        is_news.then_some(EndpointEvent::Idle(is_idle))
    }

    /// Opens a stream; `None` if the peer's stream limit is reached.
    /// [`Available`](crate::StreamEvent::Available) reports when it is raised.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        self.lifecycle.is_open().then(|| self.streams.open(dir))?
    }

    /// The next stream that the peer opened.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.accept(dir)
    }

    /// Writes a copy of `data`, or of its front; returns the number of bytes taken.
    ///
    /// # Errors
    ///
    /// [`WriteError::Blocked`] while the send buffer or flow control is full; other errors are final.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let written = self.streams.write(id, data);
        self.sending.refresh(&mut self.streams);
        written
    }

    /// Writes the front of `data` without copying and advances it; returns the number of bytes taken.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub fn write_chunk(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        let written = self.streams.write_chunk(id, data);
        self.sending.refresh(&mut self.streams);
        written
    }

    /// The number of bytes that [`Self::write`] would take now, so that the caller reads no more from its source.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub fn writable(&mut self, id: StreamId) -> Result<u64, WriteError> {
        let room = self.streams.writable(id);
        self.sending.refresh(&mut self.streams);
        room
    }

    /// Bytes written to the stream and not acknowledged yet.
    pub fn unacknowledged(&self, id: StreamId) -> u64 {
        self.streams.unacknowledged(id)
    }

    /// Bytes written to all streams and not acknowledged yet.
    pub fn all_unacknowledged(&self) -> u64 {
        self.streams.all_unacknowledged()
    }

    /// Bytes of all streams that the peer has sent and the application has not read, gaps included: an upper bound of
    /// the memory held.
    pub fn unread(&self) -> u64 {
        self.streams.unread_bytes()
    }

    /// Ends the stream after the written data.
    ///
    /// # Errors
    ///
    /// If the stream is finished or reset already.
    pub fn finish(&mut self, id: StreamId) -> Result<(), FinishError> {
        let finished = self.streams.finish(id);
        self.sending.refresh(&mut self.streams);
        finished
    }

    /// Resets the sending part of a stream; the peer receives `error_code`.
    ///
    /// # Errors
    ///
    /// If the stream is finished or reset already.
    pub fn reset(&mut self, id: StreamId, error_code: u64) -> Result<(), ClosedStream> {
        let reset = self.streams.reset(id, error_code);
        self.sending.refresh(&mut self.streams);
        reset
    }

    /// Asks the peer to stop sending (STOP_SENDING) with `error_code`.
    ///
    /// # Errors
    ///
    /// If the stream is received in full or reset already.
    pub fn stop(&mut self, id: StreamId, error_code: u64) -> Result<(), ClosedStream> {
        self.streams.stop(id, error_code)
    }

    /// The next bytes of a stream, at most `max`, without copying; `None` at its end. `now` is called only if flow
    /// control measures the read rate.
    ///
    /// # Errors
    ///
    /// [`ReadError::Blocked`] while none are available; other errors are final.
    pub fn read(
        &mut self,
        now: impl Fn() -> Instant,
        id: StreamId,
        max: usize,
    ) -> Result<Option<Bytes>, ReadError> {
        self.streams.read(id, max, now)
    }

    /// Bytes of a stream that have arrived and cannot be read because earlier ones are missing; 0 if there
    /// is no such stream.
    pub fn out_of_order_bytes(&self, id: StreamId) -> u64 {
        self.streams.out_of_order_bytes_of(id)
    }

    /// Sets the priority of a stream for the stream scheduler.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.streams.set_priority(id, priority);
        self.sending.set_priority(id, priority);
    }

    /// Sends `data` in a DATAGRAM frame, which is not retransmitted if it is lost (RFC 9221).
    ///
    /// # Errors
    ///
    /// If the peer takes no datagrams, `data` is too long, or the send buffer is full.
    pub fn send_datagram(&mut self, data: Bytes) -> Result<(), DatagramError> {
        let room = self.payload_room();
        self.datagrams.send(data, room)
    }

    /// Sends `data` in a DATAGRAM frame on the path `id`. If that fails to answer before it is sent, or within 250 ms after,
    /// another path carries it, so that it may arrive twice; a packet that is lost otherwise is not repeated (RFC 9221).
    ///
    /// A path holds some 4 ms at its rate that were not sent, so that the queue is the application's.
    ///
    /// # Errors
    ///
    /// As [`send_datagram`](Self::send_datagram), and [`DatagramError::NoPath`]: there is no such path, or it does not answer.
    pub fn send_datagram_on(
        &mut self,
        now: Instant,
        id: PathId,
        data: Bytes,
    ) -> Result<(), DatagramError> {
        let room = self.payload_room();
        let at = self.datagram_slots().find(|&at| self.paths[at].id == id);
        let path = &mut self.paths[at.ok_or(DatagramError::NoPath)?];
        let view = path.view(now);
        self.datagrams
            .send_on(&mut path.datagrams, &view, data, room)
    }

    /// The paths that can carry datagrams now: those that answer, or all that are open if none does.
    pub fn datagram_paths(&self, now: Instant) -> impl Iterator<Item = DatagramPath> {
        self.datagram_slots().map(move |at| {
            let path = &self.paths[at];
            self.datagrams.path_view(&path.datagrams, path.view(now))
        })
    }

    fn datagram_slots(&self) -> impl Iterator<Item = Slot> {
        let any_live = self.paths.iter().any(Path::is_live);
        self.paths.slots().filter(move |&at| match any_live {
            true => self.paths[at].is_live(),
            false => self.paths[at].is_open(),
        })
    }

    /// The next received datagram.
    pub fn recv_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.receive()
    }

    /// Maximum length of a datagram that can be sent now, in bytes; `None` if the peer accepts none.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.datagrams.max_len(self.payload_room())
    }

    /// Payload size of a 1-RTT packet that fits on every open path, in bytes.
    fn payload_room(&self) -> usize {
        let first = self.paths.main().payload_room();
        let open = self.paths.iter().filter(|path| path.is_open());
        open.map(Path::payload_room).fold(first, usize::min)
    }

    /// Initiates a key update (RFC 9001, section 6); returns whether that is permitted now.
    pub fn initiate_key_update(&mut self, now: Instant) -> bool {
        let Some(keys) = self.establishment.one_rtt_mut() else {
            return false;
        };
        let begun = keys.initiate_update().is_ok();
        if begun {
            self.ping();
            self.telemetry.report_keys_installed(
                now,
                &self.establishment,
                KeyKind::OneRtt,
                KeyTrigger::LocalUpdate,
            );
        }
        begun
    }

    /// Sends a PING, which the peer acknowledges.
    pub fn ping(&mut self) {
        let at = self.paths.best();
        self.paths[at].ping_due = true;
    }

    /// The QUIC version of the connection: the negotiated one, once the handshake is complete.
    pub fn version(&self) -> u32 {
        self.establishment.versions().current()
    }

    /// Whether this end is the client or the server.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Whether the handshake is incomplete.
    pub fn is_handshaking(&self) -> bool {
        self.establishment.tls().is_handshaking()
    }

    /// Whether the application can no longer send or receive.
    pub fn is_closed(&self) -> bool {
        !self.lifecycle.is_open()
    }

    /// Whether the connection is drained and can be removed.
    pub fn is_drained(&self) -> bool {
        self.lifecycle.is_drained()
    }

    /// The reason why the connection ended, once it has.
    pub fn error(&self) -> Option<&ConnectionError> {
        self.lifecycle.error()
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.paths.main().tuples.active.addresses.remote
    }

    /// The local address; unspecified if the socket does not report it.
    pub fn local_address(&self) -> SocketAddr {
        self.paths.main().tuples.active.addresses.local
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.paths.main().recovery.rtt().smoothed()
    }

    /// The first destination connection ID of the client, which names the connection in logs.
    pub fn original_destination(&self) -> ConnectionId {
        self.establishment.progress().original_destination()
    }

    /// Our connection ID during the handshake.
    pub(crate) fn handshake_cid(&self) -> ConnectionId {
        self.establishment.progress().local_cid()
    }

    /// Whether a packet of the peer was authenticated.
    pub(crate) fn has_opened_packet(&self) -> bool {
        self.establishment.progress().has_opened_packet()
    }

    /// The application protocol, once it is negotiated.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.establishment.tls().alpn()
    }

    /// The server name of the handshake, if the client sent one.
    pub fn server_name(&self) -> Option<&str> {
        self.establishment.server_name()
    }

    /// The peer's certificates, its own first, once the handshake is complete; those of a resumed session are known to a server as soon
    /// as there is 0-RTT.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.establishment.tls().peer_certificates()
    }

    /// Whether an earlier session was resumed; known once the handshake is complete.
    pub fn is_resumed(&self) -> bool {
        matches!(
            self.establishment.tls().kind(),
            Some(rustls::HandshakeKind::Resumed)
        )
    }

    /// Whether the server accepted 0-RTT data.
    pub fn is_early_data_accepted(&self) -> bool {
        self.establishment.tls().is_early_data_accepted()
    }

    /// Client: whether 0-RTT data can be written now.
    pub fn has_zero_rtt(&self) -> bool {
        self.side.is_client() && self.establishment.has_keys(EncryptionLevel::ZeroRtt)
    }

    /// Server: whether the data read so far may be a replay, because the handshake is not complete (RFC 9001, section
    /// 9.2).
    pub fn is_replayable(&self) -> bool {
        self.side.is_server() && self.establishment.tls().is_handshaking()
    }

    /// Fills `output` with exported keying material (RFC 8446, section 7.5).
    ///
    /// # Errors
    ///
    /// If the handshake is not complete, or the server does not keep its exporter.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), rustls::Error> {
        self.establishment
            .tls()
            .export_keying_material(output, label, context)
    }
}
