//! The events of a connection.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use marline_wire::StreamId;

use crate::error::StreamError;
use crate::priority::Priority;
use crate::settings::Settings;

/// An event of the connection as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer's settings arrived.
    Settings(Settings),
    /// The peer is going away (RFC 9114, section 5.2). A server names the first request that it does not process, and
    /// those from there on [failed](StreamEvent::Failed) with H3_REQUEST_REJECTED; a client the first push.
    Goaway {
        /// The stream ID or push ID.
        id: u64,
    },
    /// A stream has events again without having received bytes: a field section waited for the peer's QPACK encoder
    /// stream, or the request was rejected.
    Readable(StreamId),
    /// The client changed the priority of a request (RFC 9218, section 7).
    Priority {
        /// The request.
        stream: StreamId,
        /// Its priority from now on.
        priority: Priority,
    },
    /// A unidirectional stream of a type that is not known: the caller stops it with H3_STREAM_CREATION_ERROR, and
    /// [forgets](super::Connection::forget) it (RFC 9114, section 6.2).
    UnknownStream(StreamId),
}

/// An event of one request stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The header section of a request.
    Request(Box<RequestHead>),
    /// An interim response (1xx); more follow.
    Interim(Box<Response<()>>),
    /// The header section of the response.
    Response(Box<Response<()>>),
    /// Content; never empty.
    Data(Bytes),
    /// The trailer section.
    Trailers(Box<HeaderMap>),
    /// The message is complete.
    Finished,
    /// The header section of a request is larger than [`Config::max_field_section_size`](super::Config): the server
    /// answers with status 431, and reads no more.
    TooLarge,
    /// The message cannot be used: the caller resets and stops the stream with the error's code.
    Failed(StreamError),
    /// The peer reset the stream with this code.
    Reset(u64),
}

/// The header section of a request.
#[derive(Debug)]
pub struct RequestHead {
    /// The request. A protocol of extended CONNECT is the extension [`Protocol`](crate::Protocol).
    pub request: Request<()>,
    /// The priority of its response: that of the client's last PRIORITY_UPDATE frame, or of its field.
    pub priority: Priority,
}

/// A unidirectional stream that this end opens when it has the first bytes for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LocalStream {
    /// The control stream (RFC 9114, section 6.2.1).
    Control = 0,
    /// The QPACK encoder stream (RFC 9204, section 4.2).
    QpackEncoder = 1,
    /// The QPACK decoder stream (RFC 9204, section 4.2).
    QpackDecoder = 2,
}

impl LocalStream {
    /// All, by number.
    pub const ALL: [Self; 3] = [Self::Control, Self::QpackEncoder, Self::QpackDecoder];

    /// The stream type, its first byte.
    pub(super) const fn kind(self) -> u8 {
        match self {
            Self::Control => 0x00,
            Self::QpackEncoder => 0x02,
            Self::QpackDecoder => 0x03,
        }
    }
}

/// Bytes to write on a stream of this end, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The stream.
    pub stream: LocalStream,
    /// The bytes.
    pub bytes: Bytes,
}

/// Why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The peer accepts no field section of this size.
    #[error("the header has {size} bytes, and the peer accepts {limit}")]
    TooLarge {
        /// Bytes of the field section (RFC 9114, section 4.2.2).
        size: u64,
        /// The limit that the peer announced.
        limit: u64,
    },
    /// The server is going away, and accepts no more requests.
    #[error("the server is going away")]
    GoingAway,
    /// The peer has not announced extended CONNECT.
    #[error("the server does not support extended CONNECT")]
    NoConnectProtocol,
    /// The request has no host.
    #[error("the target of the request has no host")]
    NoAuthority,
    /// HTTP/3 has no responses with status 101 (RFC 9114, section 4.5).
    #[error("HTTP/3 has no responses with status 101")]
    SwitchingProtocols,
}
