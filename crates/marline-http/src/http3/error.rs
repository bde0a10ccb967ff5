//! The errors of requests over HTTP/3.

use marline::{ConnectionError, ReadError, WriteError};
use marline_h3::{Error, ErrorCode, SendError, StreamError};

/// Why a message was not sent or received.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The peer's message cannot be used, or the server rejected the request.
    #[error(transparent)]
    Message(#[from] StreamError),
    /// The peer abandoned the stream, or does not read it.
    #[error("the peer abandoned the stream with {0}")]
    Abandoned(ErrorCode),
    /// The peer accepts no such message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The peer violated HTTP/3.
    #[error("the peer violated HTTP/3: {0}")]
    Protocol(#[from] Error),
    /// The connection ended.
    #[error("the connection was lost: {}", explain(.0))]
    Lost(#[from] ConnectionError),
    /// The stream was ended by this side before.
    #[error("the stream is closed")]
    Closed,
}

/// The error with the code of HTTP/3 by its name, which is unknown to QUIC.
fn explain(error: &ConnectionError) -> String {
    let ConnectionError::PeerApplication { code, reason } = error else {
        return error.to_string();
    };
    let code = ErrorCode::new(*code);
    let reason = String::from_utf8_lossy(reason);
    match reason.is_empty() {
        true => format!("the peer closed it with {code}"),
        false => format!("the peer closed it with {code} ({})", reason.escape_debug()),
    }
}

impl RequestError {
    /// Whether the peer has closed the connection, and had no error to signal: with H3_NO_ERROR, or with the code 0, as
    /// many libraries do.
    pub(crate) fn is_clean_close(&self) -> bool {
        match self {
            Self::Lost(ConnectionError::PeerApplication { code, .. }) => {
                [0, ErrorCode::NO_ERROR.value()].contains(code)
            }
            Self::Lost(ConnectionError::PeerTransport { code, .. }) => {
                *code == marline::ErrorCode::NO_ERROR
            }
            _ => false,
        }
    }

    /// Whether the server has not processed the request, so that it can be sent again (RFC 9114, sections 4.1.1 and 5.2).
    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            Self::Message(error) => error.code() == ErrorCode::REQUEST_REJECTED,
            Self::Abandoned(code) => *code == ErrorCode::REQUEST_REJECTED,
            Self::Send(error) => *error == SendError::GoingAway,
            _ => false,
        }
    }

    pub(super) fn abandoned(code: u64) -> Self {
        Self::Abandoned(ErrorCode::new(code))
    }
}

impl From<WriteError> for RequestError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::abandoned(code),
            WriteError::ConnectionLost(error) => Self::Lost(error),
            _ => Self::Closed,
        }
    }
}

impl From<ReadError> for RequestError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::abandoned(code),
            ReadError::ConnectionLost(error) => Self::Lost(error),
            ReadError::Closed => Self::Closed,
        }
    }
}
