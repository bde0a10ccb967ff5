//! The peer's control stream (RFC 9114, sections 6.2.1 and 7.2).

use bytes::Bytes;
use marline_wire::{Dir, Reader, Side, StreamId};

use crate::error::{Error, ErrorCode};
use crate::frame::{FrameParser, FrameType, Piece, Treatment};
use crate::limits;
use crate::priority::Priority;
use crate::settings::Settings;

/// Bytes of the largest variable-length integer.
const MAX_VARINT: u64 = 8;

/// A frame of the control stream, checked as far as it can be without the state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlFrame {
    Settings(Settings),
    Goaway(u64),
    MaxPushId(u64),
    Priority {
        stream: StreamId,
        priority: Priority,
    },
}

/// Parses the peer's control stream.
#[derive(Debug)]
pub(super) struct ControlStream {
    /// The side of this end.
    side: Side,
    parser: FrameParser,
    has_settings: bool,
}

impl ControlStream {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            parser: FrameParser::default(),
            has_settings: false,
        }
    }

    /// The next frame in `input`.
    pub(super) fn next(&mut self, input: &mut Bytes) -> Result<Option<ControlFrame>, Error> {
        while let Some(piece) = self.parser.next(input) {
            match piece {
                Piece::Header { kind, length } => {
                    let treatment = self.on_frame(kind, length)?;
                    self.parser.treat(treatment);
                }
                Piece::Payload { kind, payload } => {
                    return self.on_payload(kind, &payload).map(Some);
                }
                // No frame is passed.
                Piece::Part(_) => {}
            }
        }
        Ok(None)
    }

    fn on_frame(&mut self, kind: FrameType, length: u64) -> Result<Treatment, Error> {
        let unexpected = |reason| Err(Error::new(ErrorCode::FRAME_UNEXPECTED, reason));
        if !self.has_settings && kind != FrameType::SETTINGS {
            return Err(Error::new(
                ErrorCode::MISSING_SETTINGS,
                "the control stream begins without SETTINGS",
            ));
        }
        match kind {
            FrameType::SETTINGS if self.has_settings => unexpected("SETTINGS twice"),
            FrameType::SETTINGS => {
                self.has_settings = true;
                collect(length, limits::MAX_SETTINGS_BYTES)
            }
            FrameType::GOAWAY | FrameType::CANCEL_PUSH => integer(length),
            FrameType::MAX_PUSH_ID if self.side.is_server() => integer(length),
            FrameType::PRIORITY_UPDATE_REQUEST | FrameType::PRIORITY_UPDATE_PUSH
                if self.side.is_server() =>
            {
                collect(length, MAX_VARINT + limits::MAX_PRIORITY_BYTES)
            }
            FrameType::MAX_PUSH_ID
            | FrameType::PRIORITY_UPDATE_REQUEST
            | FrameType::PRIORITY_UPDATE_PUSH => unexpected("a frame of clients from a server"),
            FrameType::DATA | FrameType::HEADERS | FrameType::PUSH_PROMISE => {
                unexpected("a frame of a request stream on the control stream")
            }
            kind if kind.is_http2_only() => unexpected("a frame of HTTP/2"),
            _ => Ok(Treatment::Skip),
        }
    }

    fn on_payload(&self, kind: FrameType, payload: &[u8]) -> Result<ControlFrame, Error> {
        let id_error = |reason| Err(Error::new(ErrorCode::ID_ERROR, reason));
        let mut reader = Reader::new(payload);
        if kind == FrameType::SETTINGS {
            return Settings::decode(payload).map(ControlFrame::Settings);
        }
        let cut = |_| Error::new(ErrorCode::FRAME_ERROR, "a frame without its identifier");
        let id = reader.varint().map_err(cut)?;
        if kind == FrameType::PRIORITY_UPDATE_REQUEST {
            let stream = StreamId::from(id);
            if stream.dir() != Dir::Bi || stream.initiator() != Side::Client {
                return id_error("a priority of a stream that is not a request");
            }
            let priority = Priority::parse(reader.rest());
            return Ok(ControlFrame::Priority { stream, priority });
        }
        if kind == FrameType::PRIORITY_UPDATE_PUSH {
            return id_error("a priority of a push that was not promised");
        }
        if !reader.is_empty() {
            return Err(Error::new(
                ErrorCode::FRAME_ERROR,
                "a frame with more than its identifier",
            ));
        }
        match kind {
            FrameType::GOAWAY => Ok(ControlFrame::Goaway(id)),
            FrameType::MAX_PUSH_ID => Ok(ControlFrame::MaxPushId(id)),
            // Neither end of this implementation allows or promises any.
            _ => id_error("CANCEL_PUSH for a push that does not exist"),
        }
    }
}

fn collect(length: u64, limit: u64) -> Result<Treatment, Error> {
    match length > limit {
        true => Err(Error::new(
            ErrorCode::EXCESSIVE_LOAD,
            "a frame of the control stream exceeds its limit",
        )),
        false => Ok(Treatment::Collect),
    }
}

/// A frame of one variable-length integer.
fn integer(length: u64) -> Result<Treatment, Error> {
    match length {
        1..=MAX_VARINT => Ok(Treatment::Collect),
        _ => Err(Error::new(
            ErrorCode::FRAME_ERROR,
            "a frame of an identifier with another size",
        )),
    }
}
