//! Decoding errors of frames, and the transport errors they map to.

use std::convert::Infallible;
use std::fmt;

use crate::{ErrorCode, LargePathId, TransportError, Truncated};

/// Bytes that cannot be decoded as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// The frame type; 0 if the bytes ended within it.
    pub frame_type: u64,
    /// The kind of error.
    pub kind: FrameErrorKind,
}

/// Kinds of decoding errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameErrorKind {
    /// The packet ends before the frame does.
    Truncated,
    /// A frame type that neither RFC 9000 nor a supported extension defines.
    UnknownType,
    /// The frame type is not encoded in its shortest form (RFC 9000, section 12.4).
    LongType,
    /// A path ID above 2^32 - 1 (draft-ietf-quic-multipath-21, sections 4 and 4.6).
    LargePathId,
    /// A value forbidden by the RFC.
    Invalid(&'static str),
}

impl FrameErrorKind {
    const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "the packet ends before the frame does",
            Self::UnknownType => "an unknown frame type",
            Self::LongType => "a frame type not in its shortest form",
            Self::LargePathId => LargePathId::REASON,
            Self::Invalid(reason) => reason,
        }
    }
}

impl From<Truncated> for FrameErrorKind {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl From<LargePathId> for FrameErrorKind {
    fn from(_: LargePathId) -> Self {
        Self::LargePathId
    }
}

/// `u64` fields of `varint_frame!` convert infallibly.
impl From<Infallible> for FrameErrorKind {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frame_type, kind } = self;
        write!(f, "{} (frame of type {frame_type:#x})", kind.reason())
    }
}

impl std::error::Error for FrameError {}

impl From<FrameError> for TransportError {
    fn from(FrameError { frame_type, kind }: FrameError) -> Self {
        let code = match kind {
            FrameErrorKind::LongType | FrameErrorKind::LargePathId => ErrorCode::PROTOCOL_VIOLATION,
            _ => ErrorCode::FRAME_ENCODING_ERROR,
        };
        Self::new(code, kind.reason()).in_frame(frame_type)
    }
}
