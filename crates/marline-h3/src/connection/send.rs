//! The messages that this end sends, and its control and QPACK streams.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use marline_wire::{Dir, Side, StreamId, varint};

use super::{Config, Connection, Incoming, LocalStream, SendError, Transmit};
use crate::frame::{self, FrameType};
use crate::message::{Protocol, request_fields, request_path, response_fields, trailer_fields};
use crate::priority::Priority;
use crate::qpack::FieldRef;
use crate::settings::encode_setting;

/// Content of the reserved frame.
const GREASE: &[u8] = b"grease";

/// Bytes for this end's unidirectional streams.
#[derive(Debug)]
pub(super) struct Outgoing {
    control: Vec<u8>,
    /// Whether each stream has begun, by number.
    begun: [bool; LocalStream::ALL.len()],
}

impl Outgoing {
    /// SETTINGS are to be sent.
    pub(super) fn new(config: &Config) -> Self {
        let mut settings = Vec::new();
        config.settings().encode(&mut settings);
        if let Some(n) = config.grease {
            encode_setting(frame::reserved(n), n & 0x3f, &mut settings);
        }
        let mut control = Vec::new();
        frame::encode(FrameType::SETTINGS, &settings, &mut control);
        if let Some(n) = config.grease {
            let kind = FrameType(frame::reserved(n.rotate_left(32)));
            frame::encode(kind, GREASE, &mut control);
        }
        Self {
            control,
            begun: [false; LocalStream::ALL.len()],
        }
    }

    /// `bytes` for `stream`, after its type if they are the first.
    fn transmit(&mut self, stream: LocalStream, bytes: Bytes) -> Transmit {
        let begun = std::mem::replace(&mut self.begun[stream as usize], true);
        let bytes = match begun {
            true => bytes,
            false => [&[stream.kind()], &bytes[..]].concat().into(),
        };
        Transmit { stream, bytes }
    }

    /// A frame of the control stream with an identifier, and a value after it.
    fn push(&mut self, kind: FrameType, id: u64, value: &[u8]) {
        let mut payload = Vec::new();
        varint::encode(id, &mut payload);
        payload.extend_from_slice(value);
        frame::encode(kind, &payload, &mut self.control);
    }
}

/// The index of the last stream of a kind (RFC 9000, section 2.1).
const LAST_INDEX: u64 = (1 << 60) - 1;

impl Connection {
    /// The next bytes for this end's unidirectional streams. Each stream is opened with the first bytes for it, and is
    /// never ended.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        if !self.outgoing.control.is_empty() {
            let bytes = std::mem::take(&mut self.outgoing.control).into();
            return Some(self.outgoing.transmit(LocalStream::Control, bytes));
        }
        if let Some(bytes) = self.encoder.take_instructions() {
            return Some(self.outgoing.transmit(LocalStream::QpackEncoder, bytes));
        }
        let bytes = self.decoder.take_instructions()?;
        Some(self.outgoing.transmit(LocalStream::QpackDecoder, bytes))
    }

    /// Begins a request on a stream that this client opened; returns the bytes to write. Content follows in
    /// [DATA frames](frame::data_header), then [trailers](Self::encode_trailers), if there are any, and the end of the
    /// stream.
    ///
    /// # Errors
    /// The server accepts no such request; nothing is to be written.
    pub fn encode_request(
        &mut self,
        id: StreamId,
        request: &Request<()>,
    ) -> Result<Bytes, SendError> {
        if self.is_peer_going_away() {
            return Err(SendError::GoingAway);
        }
        let is_extended =
            request.extensions().get::<Protocol>().is_some() && request.method() == Method::CONNECT;
        if is_extended && !self.peer_settings.enable_connect_protocol {
            return Err(SendError::NoConnectProtocol);
        }
        let path = request_path(request);
        let fields = request_fields(request, &path).ok_or(SendError::NoAuthority)?;
        let bytes = self.encode_fields(id, &fields)?;
        let incoming = Incoming::new(Some(request.method().clone()));
        self.requests.insert(id, incoming);
        Ok(bytes)
    }

    /// The header section of a response, or of an interim one, which others follow; returns the bytes to write. Content
    /// and trailers follow as for [requests](Self::encode_request).
    ///
    /// # Errors
    /// The client accepts no such response; nothing is to be written.
    pub fn encode_response(
        &mut self,
        id: StreamId,
        response: &Response<()>,
    ) -> Result<Bytes, SendError> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(SendError::SwitchingProtocols);
        }
        let status = response.status();
        self.encode_fields(id, &response_fields(&status, response.headers()))
    }

    /// A trailer section; returns the bytes to write.
    ///
    /// # Errors
    /// [`SendError::TooLarge`]; nothing is to be written.
    pub fn encode_trailers(
        &mut self,
        id: StreamId,
        trailers: &HeaderMap,
    ) -> Result<Bytes, SendError> {
        self.encode_fields(id, &trailer_fields(trailers))
    }

    fn encode_fields(&mut self, id: StreamId, fields: &[FieldRef<'_>]) -> Result<Bytes, SendError> {
        /// Bytes that each field counts in addition to its name and value (RFC 9114, section
        /// 4.2.2).
        const OVERHEAD: usize = 32;
        let size: usize = fields
            .iter()
            .map(|field| field.name.len() + field.value.len() + OVERHEAD)
            .sum();
        let size = size as u64;
        if let Some(limit) = self.peer_settings.max_field_section_size
            && size > limit
        {
            return Err(SendError::TooLarge { size, limit });
        }
        let mut section = Vec::new();
        self.encoder
            .encode(id.into(), fields.iter().copied(), &mut section);
        let mut bytes = Vec::with_capacity(section.len() + 9);
        frame::encode(FrameType::HEADERS, &section, &mut bytes);
        Ok(bytes.into())
    }

    /// Sends GOAWAY for no request in particular: this server is about to [go away](Self::go_away). It accepts requests that
    /// the client sends before it knows (RFC 9114, section 5.2).
    pub fn announce_going_away(&mut self) {
        if self.side.is_server() && self.reject_from.is_none() {
            let last = StreamId::new(Side::Client, Dir::Bi, LAST_INDEX);
            self.outgoing.push(FrameType::GOAWAY, last.into(), &[]);
        }
    }

    /// Sends GOAWAY: this end accepts no more requests (a server), or no pushes (a client). A server rejects requests
    /// that arrive from now on (RFC 9114, section 5.2).
    pub fn go_away(&mut self) {
        if self.reject_from.is_some() {
            return;
        }
        let first = match self.side {
            Side::Server => self.next_request,
            // The first push ID.
            Side::Client => StreamId::new(Side::Client, Dir::Bi, 0),
        };
        self.reject_from = Some(first);
        self.outgoing.push(FrameType::GOAWAY, first.into(), &[]);
    }

    /// Sends PRIORITY_UPDATE for a request of this client (RFC 9218, section 7.2).
    pub fn update_priority(&mut self, id: StreamId, priority: Priority) {
        if self.side.is_client() {
            let value = priority.to_string();
            self.outgoing.push(
                FrameType::PRIORITY_UPDATE_REQUEST,
                id.into(),
                value.as_bytes(),
            );
        }
    }
}
