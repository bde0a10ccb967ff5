//! One end of an HTTP/3 connection.

mod config;
mod control;
mod events;
mod incoming;
mod peer_streams;
mod priorities;
mod send;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use marline_wire::{Dir, Side, StreamId};
use rustc_hash::FxHashMap;

pub use self::config::Config;
use self::control::ControlFrame;
pub use self::events::{Event, LocalStream, RequestHead, SendError, StreamEvent, Transmit};
use self::incoming::{Incoming, Rules};
use self::peer_streams::{PeerStream, PeerStreams};
use self::priorities::EarlyPriorities;
use self::send::Outgoing;
use crate::error::{Error, ErrorCode, StreamError};
use crate::qpack::{Decoder, DecoderLimits, Encoder, EncoderLimits};
use crate::settings::Settings;

/// One end of an HTTP/3 connection (RFC 9114): what arrives on streams goes in, events and bytes come out.
///
/// An error that a call returns is the connection's: the caller closes it with the error's code, and does not use this
/// any more. Only streams that exist may be named, each byte is given once and in order, and a stream is
/// [forgotten](Self::forget) when the caller no longer needs it.
///
/// The stored data is limited: for each request stream that the transport allows, a field section while it arrives;
/// for the connection, what [`Config`] and [`limits`](crate::limits) allow. Events are to be taken after each call.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    rules: Rules,
    requests: FxHashMap<StreamId, Incoming>,
    peer_streams: PeerStreams,
    encoder: Encoder,
    decoder: Decoder,
    outgoing: Outgoing,
    events: VecDeque<Event>,
    /// The peer's, or the defaults until they arrive.
    peer_settings: Settings,
    priorities: EarlyPriorities,
    /// At a server: the ID above those of all requests that have arrived.
    next_request: StreamId,
    /// The identifier in the last GOAWAY frame of the peer.
    peer_goaway: Option<u64>,
    /// At a server that is going away: the first request that it rejects.
    reject_from: Option<StreamId>,
    /// At a server: the largest push ID that the client allows.
    max_push_id: Option<u64>,
}

impl Connection {
    /// The `side` end of a connection.
    pub fn new(side: Side, config: &Config) -> Self {
        Self {
            side,
            rules: Rules {
                side,
                max_field_section_size: config.max_field_section_size,
                connect_protocol: config.enable_connect_protocol,
            },
            requests: FxHashMap::default(),
            peer_streams: PeerStreams::new(side),
            encoder: Encoder::new(EncoderLimits {
                table_capacity: config.qpack_encoder_capacity,
                blocked_streams: config.qpack_encoder_blocked_streams,
            }),
            decoder: Decoder::new(DecoderLimits {
                table_capacity: config.qpack_table_capacity,
                blocked_streams: config.qpack_blocked_streams,
                max_field_section_size: config.max_field_section_size,
                blocked_bytes: blocked_bytes(config),
            }),
            outgoing: Outgoing::new(config),
            events: VecDeque::new(),
            peer_settings: Settings::default(),
            priorities: EarlyPriorities::default(),
            next_request: StreamId::new(Side::Client, Dir::Bi, 0),
            peer_goaway: None,
            reject_from: None,
            max_push_id: None,
        }
    }

    /// Its side.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The peer's settings, or the defaults until they arrive.
    pub fn peer_settings(&self) -> &Settings {
        &self.peer_settings
    }

    /// Whether the peer is going away: a server that is accepts no more requests (RFC 9114, section 5.2).
    pub fn is_peer_going_away(&self) -> bool {
        self.peer_goaway.is_some()
    }

    /// The next event of the connection.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next event of a request stream.
    pub fn poll_stream(&mut self, id: StreamId) -> Option<StreamEvent> {
        self.requests.get_mut(&id)?.poll()
    }

    /// Whether a request stream has events.
    pub fn has_stream_events(&self, id: StreamId) -> bool {
        self.requests.get(&id).is_some_and(Incoming::has_events)
    }

    /// Whether the stream waits for the peer's QPACK encoder stream: the caller should not read from it until
    /// [`Event::Readable`].
    pub fn is_blocked(&self, id: StreamId) -> bool {
        self.requests.get(&id).is_some_and(Incoming::is_blocked)
    }

    /// A client has opened a request stream; its first bytes imply that, too. A server that is going away rejects it:
    /// [`StreamEvent::Failed`].
    pub fn on_request_stream(&mut self, id: StreamId) {
        let is_request = id.dir() == Dir::Bi && id.initiator() == Side::Client;
        if self.side.is_client() || !is_request || self.requests.contains_key(&id) {
            return;
        }
        let mut incoming = Incoming::new(None);
        if self.reject_from.is_some_and(|from| id >= from) {
            incoming.fail(StreamError::new(
                ErrorCode::REQUEST_REJECTED,
                "the server is going away",
            ));
        }
        incoming.priority = self.priorities.take(id);
        self.requests.insert(id, incoming);
        let next = StreamId::new(Side::Client, Dir::Bi, id.index() + 1);
        self.next_request = self.next_request.max(next);
    }

    /// Bytes arrived on a stream of the peer, or on the peer's half of a request; with `fin`, it ends after them.
    ///
    /// # Errors
    /// The peer violated HTTP/3 or QPACK in a way that ends the connection.
    pub fn on_stream_data(&mut self, id: StreamId, data: Bytes, fin: bool) -> Result<(), Error> {
        match (id.dir(), id.initiator()) {
            (Dir::Bi, Side::Client) => self.on_request_data(id, data, fin),
            (Dir::Bi, Side::Server) => match self.side {
                // Section 6.1.
                Side::Client => Err(Error::new(
                    ErrorCode::STREAM_CREATION_ERROR,
                    "a bidirectional stream of a server",
                )),
                Side::Server => Ok(()),
            },
            (Dir::Uni, initiator) if initiator == self.side => Ok(()),
            (Dir::Uni, _) => self.on_peer_stream_data(id, data, fin),
        }
    }

    /// The peer reset a stream, with this code.
    ///
    /// # Errors
    /// H3_CLOSED_CRITICAL_STREAM: the connection needs the stream.
    pub fn on_reset(&mut self, id: StreamId, code: u64) -> Result<(), Error> {
        match id.dir() {
            Dir::Uni => self.peer_streams.on_end(id),
            Dir::Bi => {
                if let Some(incoming) = self.requests.get_mut(&id) {
                    incoming.cancel(id, &mut self.decoder);
                    incoming.on_reset(code);
                }
                Ok(())
            }
        }
    }

    /// The peer sent STOP_SENDING for a stream of this end. The caller decides what that means for a request.
    ///
    /// # Errors
    /// H3_CLOSED_CRITICAL_STREAM: the connection needs the stream (RFC 9114, section 6.2.1; RFC 9204, section 4.2).
    pub fn on_stop_sending(&mut self, id: StreamId) -> Result<(), Error> {
        match id.dir() == Dir::Uni && id.initiator() == self.side {
            true => Err(Error::new(
                ErrorCode::CLOSED_CRITICAL_STREAM,
                "a control or QPACK stream was stopped",
            )),
            false => Ok(()),
        }
    }

    /// The caller reads no more of a request stream: it has stopped the stream, or read all of it.
    pub fn stop_receiving(&mut self, id: StreamId) {
        if let Some(incoming) = self.requests.get_mut(&id) {
            incoming.cancel(id, &mut self.decoder);
            incoming.abandon();
        }
    }

    /// The caller no longer needs a stream, in either direction.
    pub fn forget(&mut self, id: StreamId) {
        match id.dir() {
            Dir::Uni => self.peer_streams.forget(id),
            Dir::Bi => {
                self.stop_receiving(id);
                self.requests.remove(&id);
            }
        }
    }

    fn on_request_data(&mut self, id: StreamId, data: Bytes, fin: bool) -> Result<(), Error> {
        self.on_request_stream(id);
        match self.requests.get_mut(&id) {
            Some(incoming) => incoming.on_data(id, data, fin, &self.rules, &mut self.decoder),
            None => Ok(()),
        }
    }

    fn on_peer_stream_data(
        &mut self,
        id: StreamId,
        mut data: Bytes,
        fin: bool,
    ) -> Result<(), Error> {
        match self.peer_streams.receive(id, &mut data)? {
            PeerStream::Undecided { .. } | PeerStream::Ignored { is_reported: true } => {}
            PeerStream::Ignored { is_reported } => {
                *is_reported = true;
                self.events.push_back(Event::UnknownStream(id));
            }
            PeerStream::QpackEncoder => {
                self.decoder.on_encoder_stream(&data)?;
                self.resume_blocked()?;
            }
            PeerStream::QpackDecoder => self.encoder.on_decoder_stream(&data)?,
            PeerStream::Control(_) => self.on_control_data(id, data)?,
        }
        match fin {
            true => self.peer_streams.on_end(id),
            false => Ok(()),
        }
    }

    /// Resumes streams whose field sections waited for the peer's encoder stream.
    fn resume_blocked(&mut self) -> Result<(), Error> {
        while let Some(unblocked) = self.decoder.poll_unblocked() {
            let id = StreamId::from(unblocked.stream_id);
            let decoded = unblocked.result?;
            if let Some(incoming) = self.requests.get_mut(&id) {
                incoming.on_unblocked(id, decoded, &self.rules, &mut self.decoder)?;
                self.events.push_back(Event::Readable(id));
            }
        }
        Ok(())
    }

    fn on_control_data(&mut self, id: StreamId, mut data: Bytes) -> Result<(), Error> {
        while let Some(frame) = self.peer_streams.next_control_frame(id, &mut data)? {
            match frame {
                ControlFrame::Settings(settings) => self.on_settings(settings),
                ControlFrame::Goaway(id) => self.on_goaway(id)?,
                ControlFrame::MaxPushId(id) => self.on_max_push_id(id)?,
                ControlFrame::Priority { stream, priority } => {
                    self.on_priority_update(stream, priority);
                }
            }
        }
        Ok(())
    }

    fn on_settings(&mut self, settings: Settings) {
        self.peer_settings = settings;
        self.encoder.on_peer_settings(
            settings.qpack_max_table_capacity,
            settings.qpack_blocked_streams,
        );
        self.events.push_back(Event::Settings(settings));
    }

    /// Sections 5.2 and 7.2.6.
    fn on_goaway(&mut self, id: u64) -> Result<(), Error> {
        let first_rejected = StreamId::from(id);
        let is_request =
            first_rejected.dir() == Dir::Bi && first_rejected.initiator() == Side::Client;
        if self.side.is_client() && !is_request {
            return Err(Error::new(
                ErrorCode::ID_ERROR,
                "GOAWAY names a stream that is not a request",
            ));
        }
        if self.peer_goaway.is_some_and(|last| id > last) {
            return Err(Error::new(
                ErrorCode::ID_ERROR,
                "GOAWAY with a larger identifier than the last",
            ));
        }
        self.peer_goaway = Some(id);
        self.events.push_back(Event::Goaway { id });
        if self.side.is_client() {
            self.reject_own(first_rejected);
        }
        Ok(())
    }

    /// Requests from `first` on were not processed.
    fn reject_own(&mut self, first: StreamId) {
        let mut rejected: Vec<_> = self
            .requests
            .iter()
            .filter(|(id, incoming)| **id >= first && !incoming.is_done())
            .map(|(id, _)| *id)
            .collect();
        rejected.sort_unstable();
        for id in rejected {
            if let Some(incoming) = self.requests.get_mut(&id) {
                incoming.cancel(id, &mut self.decoder);
                incoming.fail(StreamError::new(
                    ErrorCode::REQUEST_REJECTED,
                    "the server went away before it processed the request",
                ));
                self.events.push_back(Event::Readable(id));
            }
        }
    }

    /// Section 7.2.7.
    fn on_max_push_id(&mut self, id: u64) -> Result<(), Error> {
        if self.max_push_id.is_some_and(|last| id < last) {
            return Err(Error::new(
                ErrorCode::ID_ERROR,
                "MAX_PUSH_ID below the last",
            ));
        }
        self.max_push_id = Some(id);
        Ok(())
    }
}

/// Room for as many blocked sections as are allowed, each of the largest size, and what the decoder counts for each.
fn blocked_bytes(config: &Config) -> usize {
    const OVERHEAD: u64 = 64;
    let each = config.max_field_section_size.saturating_add(OVERHEAD);
    let all = each.saturating_mul(config.qpack_blocked_streams);
    usize::try_from(all).unwrap_or(usize::MAX)
}
