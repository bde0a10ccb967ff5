//! What is wrong with bytes that are no frame, and what a connection says of it.

use std::convert::Infallible;
use std::fmt;

use crate::{ErrorCode, LargePathId, TransportError, Truncated};

/// Bytes that are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// The type that they began with, 0 if not even that was there.
    pub frame_type: u64,
    /// What is wrong.
    pub kind: FrameErrorKind,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameErrorKind {
    /// The packet ends first.
    Truncated,
    /// A type that no extension agreed on here defines.
    UnknownType,
    /// The type is not in its shortest form (RFC 9000, section 12.4).
    LongType,
    /// A path that no connection can have (draft-ietf-quic-multipath-21, sections 4 and 4.6).
    LargePathId,
    /// A value that its RFC forbids.
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

/// What cannot fail is the reading of an integer without limits.
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
