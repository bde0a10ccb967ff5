//! Error codes, and the errors of connections and streams.

use std::fmt;

use crate::qpack;

/// An error code of HTTP/3 or QPACK, as QUIC carries it (RFC 9114, section 8.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $label:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Its name in the registry, if it is known here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($label),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// No error: nothing is wrong, but the stream or connection is not needed any more.
    NO_ERROR = 0x100, "H3_NO_ERROR";
    /// A violation without a more specific code.
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// A failure of this end.
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR";
    /// The peer opened a stream that is not accepted.
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR";
    /// The peer closed a stream that the connection needs.
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame that is not allowed in this state or on this stream.
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame with a wrong layout or size.
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR";
    /// The peer makes this end spend too much.
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD";
    /// A stream ID or push ID is used wrongly.
    ID_ERROR = 0x108, "H3_ID_ERROR";
    /// A violation in the payload of SETTINGS.
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream does not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS";
    /// A server did not process the request: it can be repeated elsewhere.
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED";
    /// The request or its response is not needed any more.
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED";
    /// The client's stream ended without a complete request.
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// A malformed message.
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR";
    /// The connection of a CONNECT request was reset or closed.
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR";
    /// The request can only be served over HTTP/1.1.
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK";
    /// A datagram is malformed (RFC 9297, section 5.2).
    DATAGRAM_ERROR = 0x33, "H3_DATAGRAM_ERROR";
    /// A field section cannot be decoded (RFC 9204, section 6).
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// An instruction on the encoder stream cannot be interpreted.
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// An instruction on the decoder stream cannot be interpreted.
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR";
}

impl ErrorCode {
    /// The code with this value on the wire.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Its value on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why the connection ends: code and reason of its CONNECTION_CLOSE frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({code})")]
pub struct Error {
    code: ErrorCode,
    reason: Reason,
}

/// The reason phrase of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Text(&'static str),
    Qpack(qpack::Error),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Qpack(error) => error.fmt(f),
        }
    }
}

impl From<qpack::Error> for Error {
    fn from(error: qpack::Error) -> Self {
        Self {
            code: ErrorCode::new(error.code()),
            reason: Reason::Qpack(error),
        }
    }
}

impl Error {
    /// An error with a reason for people.
    pub const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self {
            code,
            reason: Reason::Text(reason),
        }
    }

    /// The application error code.
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The reason phrase.
    pub fn reason(&self) -> impl fmt::Display {
        self.reason
    }
}

/// Why one request stream ends: it is reset, and the peer asked to stop sending, with this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({code})")]
pub struct StreamError {
    code: ErrorCode,
    reason: &'static str,
}

impl StreamError {
    /// An error with a reason for people.
    pub const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    /// The message is malformed (RFC 9114, section 4.1.2).
    pub(crate) const fn malformed(reason: &'static str) -> Self {
        Self::new(ErrorCode::MESSAGE_ERROR, reason)
    }

    /// The application error code.
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The reason of the error.
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}
