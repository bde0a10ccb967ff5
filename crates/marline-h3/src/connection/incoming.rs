//! The message that arrives on one request stream (RFC 9114, section 4.1).

use std::collections::VecDeque;

use bytes::Bytes;
use http::{Method, StatusCode};
use marline_wire::{Side, StreamId};

use super::events::{RequestHead, StreamEvent};
use crate::error::{Error, ErrorCode, StreamError};
use crate::frame::{FrameParser, FrameType, Piece, Treatment};
use crate::limits;
use crate::message::{ContentLength, decode_request, decode_response, decode_trailers};
use crate::priority::Priority;
use crate::qpack::{Decoded, Decoder, FieldLine};

/// The limits of the connection for its streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The side of this end: requests arrive if it is the server.
    pub(super) side: Side,
    pub(super) max_field_section_size: u64,
    pub(super) connect_protocol: bool,
}

/// Receives one message.
#[derive(Debug)]
pub(super) struct Incoming {
    phase: Phase,
    parser: FrameParser,
    events: VecDeque<StreamEvent>,
    /// The method of the request: what arrives, or, at a client, what was sent.
    method: Option<Method>,
    length: ContentLength,
    /// Whether the message can have no content, regardless of its fields (RFC 9110, section 6.4.1).
    is_bodiless: bool,
    interim: u32,
    /// Whether a field section waits for the peer's encoder stream; what follows it is held.
    is_blocked: bool,
    held: VecDeque<Bytes>,
    held_bytes: usize,
    /// Whether the end of the stream arrived while blocked.
    held_end: bool,
    /// Whether no field section is left that the QPACK decoder was not given: all were, or it knows that they are lost.
    is_settled: bool,
    /// The priority from a PRIORITY_UPDATE frame.
    pub(super) priority: Option<Priority>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The header section, or an interim response, is next.
    Head,
    /// Content or trailers are next.
    Content,
    /// As [`Content`](Self::Content), without trailers: the stream is a tunnel.
    Tunnel,
    /// Nothing but frames of unknown types may follow.
    Trailers,
    /// Further data is dropped.
    Done,
}

impl Incoming {
    /// A message that has not begun to arrive; at a client, the response to `method`.
    pub(super) fn new(method: Option<Method>) -> Self {
        Self {
            phase: Phase::Head,
            parser: FrameParser::default(),
            events: VecDeque::new(),
            method,
            length: ContentLength::default(),
            is_bodiless: false,
            interim: 0,
            is_blocked: false,
            held: VecDeque::new(),
            held_bytes: 0,
            held_end: false,
            is_settled: false,
            priority: None,
        }
    }

    pub(super) fn poll(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Whether the message has ended, or failed.
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether the header section of a request has been reported.
    pub(super) fn is_announced(&self) -> bool {
        self.phase != Phase::Head
    }

    /// The message cannot be used.
    pub(super) fn fail(&mut self, error: StreamError) {
        self.end(StreamEvent::Failed(error));
    }

    /// Cancels field sections that will never be decoded, so that the peer's encoder can release their references (RFC
    /// 9204, section 2.2.2.2).
    pub(super) fn cancel(&mut self, id: StreamId, decoder: &mut Decoder) {
        if !std::mem::replace(&mut self.is_settled, true) {
            decoder.on_stream_cancelled(id.into());
        }
    }

    /// The peer abandoned the message. What has arrived is dropped, as QUIC does.
    pub(super) fn on_reset(&mut self, code: u64) {
        if !self.is_done() {
            self.end(StreamEvent::Reset(code));
        }
    }

    /// This end does not want the rest.
    pub(super) fn abandon(&mut self) {
        self.phase = Phase::Done;
        self.release();
        self.events.clear();
    }

    fn end(&mut self, event: StreamEvent) {
        self.phase = Phase::Done;
        self.release();
        self.events.push_back(event);
    }

    fn release(&mut self) {
        self.is_blocked = false;
        self.held.clear();
        self.held_bytes = 0;
        self.parser = FrameParser::default();
    }

    /// Bytes of the stream, and its end if `fin`.
    pub(super) fn on_data(
        &mut self,
        id: StreamId,
        mut data: Bytes,
        fin: bool,
        rules: &Rules,
        decoder: &mut Decoder,
    ) -> Result<(), Error> {
        if self.is_blocked {
            self.hold(id, data, fin, decoder);
            return Ok(());
        }
        while !self.is_done() {
            let Some(piece) = self.parser.next(&mut data) else {
                break;
            };
            self.on_piece(id, piece, rules, decoder)?;
            if self.is_blocked {
                self.hold(id, data, fin, decoder);
                return Ok(());
            }
        }
        if fin && !self.is_done() {
            self.on_end(rules)?;
        }
        Ok(())
    }

    /// The field section that waited was decoded; what was held behind it follows.
    pub(super) fn on_unblocked(
        &mut self,
        id: StreamId,
        decoded: Decoded,
        rules: &Rules,
        decoder: &mut Decoder,
    ) -> Result<(), Error> {
        if !self.is_blocked {
            return Ok(());
        }
        self.is_blocked = false;
        self.held_bytes = 0;
        let mut held = std::mem::take(&mut self.held);
        let fin = std::mem::take(&mut self.held_end);
        self.on_decoded(decoded, rules);
        // The last of what was held brings the end.
        while let Some(data) = held.pop_front() {
            self.on_data(id, data, false, rules, decoder)?;
        }
        if fin {
            self.on_data(id, Bytes::new(), true, rules, decoder)?;
        }
        Ok(())
    }

    fn hold(&mut self, id: StreamId, data: Bytes, fin: bool, decoder: &mut Decoder) {
        self.held_bytes += data.len();
        self.held_end |= fin;
        if self.held_bytes > limits::MAX_HELD_BYTES {
            self.cancel(id, decoder);
            self.fail(StreamError::new(
                ErrorCode::EXCESSIVE_LOAD,
                "too much arrived behind a field section that waits",
            ));
        } else if !data.is_empty() {
            self.held.push_back(data);
        }
    }

    fn on_piece(
        &mut self,
        id: StreamId,
        piece: Piece,
        rules: &Rules,
        decoder: &mut Decoder,
    ) -> Result<(), Error> {
        match piece {
            Piece::Header { kind, length } => {
                let treatment = self.on_frame(kind, rules)?;
                let is_large = length > rules.max_field_section_size;
                if treatment == Treatment::Collect && is_large {
                    self.cancel(id, decoder);
                    self.on_too_large(rules);
                    return Ok(());
                }
                self.parser.treat(treatment);
            }
            Piece::Part(data) => self.on_content(data),
            Piece::Payload { payload, .. } => match decoder.decode(id.into(), payload)? {
                Decoded::Blocked => self.is_blocked = true,
                decoded => self.on_decoded(decoded, rules),
            },
        }
        Ok(())
    }

    /// The treatment of a frame of this type, if it may come next (sections 4.1 and 7.2).
    fn on_frame(&mut self, kind: FrameType, rules: &Rules) -> Result<Treatment, Error> {
        let unexpected = |reason| Err(Error::new(ErrorCode::FRAME_UNEXPECTED, reason));
        match kind {
            FrameType::DATA => match self.phase {
                Phase::Content | Phase::Tunnel => Ok(Treatment::Pass),
                Phase::Head => unexpected("DATA before a header section"),
                _ => unexpected("DATA after a trailer section"),
            },
            FrameType::HEADERS => match self.phase {
                Phase::Head | Phase::Content => Ok(Treatment::Collect),
                Phase::Tunnel => unexpected("HEADERS in a tunnel"),
                _ => unexpected("HEADERS after a trailer section"),
            },
            FrameType::PUSH_PROMISE if rules.side.is_client() => Err(Error::new(
                ErrorCode::ID_ERROR,
                "a push, and none was allowed",
            )),
            FrameType::PUSH_PROMISE => unexpected("PUSH_PROMISE from a client"),
            FrameType::SETTINGS
            | FrameType::GOAWAY
            | FrameType::MAX_PUSH_ID
            | FrameType::CANCEL_PUSH
            | FrameType::PRIORITY_UPDATE_REQUEST
            | FrameType::PRIORITY_UPDATE_PUSH => {
                unexpected("a frame of the control stream on a request stream")
            }
            kind if kind.is_http2_only() => unexpected("a frame of HTTP/2"),
            _ => Ok(Treatment::Skip),
        }
    }

    fn on_content(&mut self, data: Bytes) {
        if self.is_bodiless {
            return self.fail(StreamError::malformed(
                "content in a response that has none",
            ));
        }
        match self.length.on_data(data.len()) {
            Ok(()) => self.events.push_back(StreamEvent::Data(data)),
            Err(error) => self.fail(error),
        }
    }

    fn on_decoded(&mut self, decoded: Decoded, rules: &Rules) {
        match decoded {
            Decoded::Fields(fields) => {
                if let Err(error) = self.on_fields(fields, rules) {
                    self.fail(error);
                }
            }
            Decoded::TooLarge => self.on_too_large(rules),
            Decoded::Blocked => {}
        }
    }

    fn on_too_large(&mut self, rules: &Rules) {
        if rules.side.is_server() && self.phase == Phase::Head {
            self.end(StreamEvent::TooLarge);
        } else {
            self.fail(StreamError::new(
                ErrorCode::EXCESSIVE_LOAD,
                "a field section exceeds the limit",
            ));
        }
    }

    fn on_fields(&mut self, fields: Vec<FieldLine>, rules: &Rules) -> Result<(), StreamError> {
        if self.phase != Phase::Head {
            let trailers = decode_trailers(fields)?;
            self.length.on_end()?;
            self.phase = Phase::Trailers;
            self.events
                .push_back(StreamEvent::Trailers(trailers.into()));
            return Ok(());
        }
        match rules.side {
            Side::Server => self.on_request(fields, rules),
            Side::Client => self.on_response(fields),
        }
    }

    fn on_request(&mut self, fields: Vec<FieldLine>, rules: &Rules) -> Result<(), StreamError> {
        let decoded = decode_request(fields, rules.connect_protocol)?;
        let method = decoded.request.method();
        self.phase = match *method == Method::CONNECT {
            true => Phase::Tunnel,
            false => Phase::Content,
        };
        self.method = Some(method.clone());
        self.length = ContentLength::new(decoded.content_length);
        let priority = self
            .priority
            .unwrap_or_else(|| Priority::of(&decoded.request));
        self.events
            .push_back(StreamEvent::Request(Box::new(RequestHead {
                request: decoded.request,
                priority,
            })));
        Ok(())
    }

    fn on_response(&mut self, fields: Vec<FieldLine>) -> Result<(), StreamError> {
        let decoded = decode_response(fields)?;
        let response = Box::new(decoded.response);
        let status = response.status();
        if status.is_informational() {
            self.interim += 1;
            if self.interim > limits::MAX_INTERIM_RESPONSES {
                return Err(StreamError::new(
                    ErrorCode::EXCESSIVE_LOAD,
                    "too many interim responses",
                ));
            }
            self.events.push_back(StreamEvent::Interim(response));
            return Ok(());
        }
        self.phase = Phase::Content;
        if self.method == Some(Method::CONNECT) && status.is_success() {
            // Its content length has no meaning (RFC 9110, section 9.3.6).
            self.phase = Phase::Tunnel;
        } else if self.method == Some(Method::HEAD)
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        {
            self.is_bodiless = true;
        } else {
            self.length = ContentLength::new(decoded.content_length);
        }
        self.events.push_back(StreamEvent::Response(response));
        Ok(())
    }

    /// The stream ends cleanly.
    fn on_end(&mut self, rules: &Rules) -> Result<(), Error> {
        if !self.parser.is_between_frames() {
            return Err(Error::new(
                ErrorCode::FRAME_ERROR,
                "a stream ended within a frame",
            ));
        }
        self.is_settled = true;
        match self.phase {
            Phase::Head if rules.side.is_server() => self.fail(StreamError::new(
                ErrorCode::REQUEST_INCOMPLETE,
                "the stream ended before the request",
            )),
            Phase::Head => self.fail(StreamError::malformed(
                "the stream ended before the response",
            )),
            _ => match self.length.on_end() {
                Ok(()) => self.end(StreamEvent::Finished),
                Err(error) => self.fail(error),
            },
        }
        Ok(())
    }
}
