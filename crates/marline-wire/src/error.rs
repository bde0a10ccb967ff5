//! Error codes of the transport (RFC 9000, section 20; draft-ietf-quic-multipath-21, section 4.2.1).

use std::fmt;

/// A transport error code as carried in CONNECTION_CLOSE (RFC 9000, section 20.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The name in the RFC, if the code has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    0x100..=0x1ff => Some("CRYPTO_ERROR"),
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Closed without an error.
    NO_ERROR = 0x0;
    /// The implementation failed.
    INTERNAL_ERROR = 0x1;
    /// The server refuses the connection.
    CONNECTION_REFUSED = 0x2;
    /// More data than permitted.
    FLOW_CONTROL_ERROR = 0x3;
    /// More streams than permitted.
    STREAM_LIMIT_ERROR = 0x4;
    /// A frame for a stream in a state that does not permit it.
    STREAM_STATE_ERROR = 0x5;
    /// The final size changed or was exceeded.
    FINAL_SIZE_ERROR = 0x6;
    /// A badly formed frame.
    FRAME_ENCODING_ERROR = 0x7;
    /// Bad transport parameters.
    TRANSPORT_PARAMETER_ERROR = 0x8;
    /// More connection IDs than permitted.
    CONNECTION_ID_LIMIT_ERROR = 0x9;
    /// Another protocol violation.
    PROTOCOL_VIOLATION = 0xa;
    /// The client's Initial carried an invalid token.
    INVALID_TOKEN = 0xb;
    /// The application closed the connection. Replaces its own code in Initial and Handshake packets
    /// (RFC 9000, section 10.2.3).
    APPLICATION_ERROR = 0xc;
    /// More CRYPTO data than can be buffered.
    CRYPTO_BUFFER_EXCEEDED = 0xd;
    /// A key update violated the rules.
    KEY_UPDATE_ERROR = 0xe;
    /// The AEAD's limit was reached.
    AEAD_LIMIT_REACHED = 0xf;
    /// No path can be used.
    NO_VIABLE_PATH = 0x10;
    /// Version negotiation was tampered with, or its parameters contradict the packets (RFC 9368).
    VERSION_NEGOTIATION_ERROR = 0x11;
    /// The application requests that a path be abandoned.
    APPLICATION_ABANDON_PATH = 0x3e;
    /// The endpoint has no resources for another path.
    PATH_RESOURCE_LIMIT_REACHED = 0x3e75;
    /// The path is unstable, or its quality is too poor.
    PATH_UNSTABLE_OR_POOR = 0x3e76;
    /// The peer has issued no connection ID for the path.
    NO_CID_AVAILABLE_FOR_PATH = 0x3e77;
}

impl From<u64> for ErrorCode {
    fn from(code: u64) -> Self {
        Self(code)
    }
}

impl From<ErrorCode> for u64 {
    fn from(code: ErrorCode) -> Self {
        code.0
    }
}

impl ErrorCode {
    /// The code that carries the TLS alert `alert` (RFC 9001, section 4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 | alert as u64)
    }

    /// The TLS alert that the code carries.
    pub const fn tls_alert(self) -> Option<u8> {
        if self.0 >> 8 == 1 {
            Some(self.0 as u8)
        } else {
            None
        }
    }
}

/// The name of a TLS alert (RFC 8446, section 6; RFC 7301, section 3.2).
const fn alert_name(alert: u8) -> Option<&'static str> {
    Some(match alert {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        _ => return None,
    })
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.tls_alert()) {
            (_, Some(alert)) => match alert_name(alert) {
                Some(name) => write!(f, "CRYPTO_ERROR (TLS alert {alert}, {name})"),
                None => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            },
            (Some(name), None) => f.write_str(name),
            (None, None) => write!(f, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error of the peer that closes the connection, reported to it in CONNECTION_CLOSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// The error code on the wire.
    pub code: ErrorCode,
    /// Type of the frame that caused the error, 0 if unknown.
    pub frame_type: u64,
    /// Reason phrase, for human readers.
    pub reason: std::borrow::Cow<'static, str>,
}

impl TransportError {
    /// An error with this code and reason phrase.
    pub fn new(code: ErrorCode, reason: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self {
            code,
            frame_type: 0,
            reason: reason.into(),
        }
    }

    /// Records the frame type that caused the error, unless one is recorded already.
    #[must_use]
    pub fn in_frame(mut self, frame_type: u64) -> Self {
        if self.frame_type == 0 {
            self.frame_type = frame_type;
        }
        self
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)?;
        if self.frame_type != 0 {
            write!(f, " (in a frame of type {:#x})", self.frame_type)?;
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {}
