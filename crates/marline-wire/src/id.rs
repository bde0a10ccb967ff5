//! Identifiers of connections, streams and paths.

use std::fmt;

/// The longest connection ID of QUIC version 1, in bytes (RFC 9000, section 17.2).
pub const MAX_CONNECTION_ID_LEN: usize = 20;

/// A connection ID: 0 to 20 opaque bytes that route packets to a connection (RFC 9000, section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CONNECTION_ID_LEN],
}

impl ConnectionId {
    /// The zero-length connection ID.
    pub const EMPTY: Self = Self {
        len: 0,
        bytes: [0; MAX_CONNECTION_ID_LEN],
    };

    /// Copies `bytes`; `None` if there are more than 20.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self {
            len: bytes.len() as u8,
            ..Self::EMPTY
        };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }
}

impl std::ops::Deref for ConnectionId {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

/// The ID of a path of a multipath connection (draft-ietf-quic-multipath-21, section 1).
///
/// The handshake runs on path 0, which is the only path of a connection without multipath. The client
/// numbers further paths consecutively; an ID is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

/// Error: a path ID above 2^32 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargePathId;

impl LargePathId {
    pub(crate) const REASON: &'static str = "a path ID above 2^32 - 1";
}

impl PathId {
    /// The path of the handshake.
    pub const INITIAL: Self = Self(0);
    /// The largest path ID: the nonce has 32 bits for it (section 2.4).
    pub const MAX: Self = Self(u32::MAX);
}

impl From<PathId> for u64 {
    fn from(id: PathId) -> Self {
        id.0.into()
    }
}

impl TryFrom<u64> for PathId {
    type Error = LargePathId;

    fn try_from(id: u64) -> Result<Self, LargePathId> {
        id.try_into().map(Self).map_err(|_| LargePathId)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LargePathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::REASON)
    }
}

impl std::error::Error for LargePathId {}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The endpoint that initiates the connection.
    Client = 0,
    /// The endpoint that accepts the connection.
    Server = 1,
}

impl Side {
    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Whether this is the client.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// Whether this is the server.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}

/// The direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// Both ends send.
    Bi = 0,
    /// Only the initiator sends.
    Uni = 1,
}

impl Dir {
    /// Both directions, in wire order.
    pub const ALL: [Self; 2] = [Self::Bi, Self::Uni];
}

/// A stream ID: initiator, direction and a counter (RFC 9000, section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u64);

impl StreamId {
    /// The `index`-th stream that `initiator` opens in direction `dir`, counted from 0.
    pub const fn new(initiator: Side, dir: Dir, index: u64) -> Self {
        Self(index << 2 | (dir as u64) << 1 | initiator as u64)
    }

    /// The end that opened the stream.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// The direction of the stream.
    pub const fn dir(self) -> Dir {
        if self.0 & 2 == 0 { Dir::Bi } else { Dir::Uni }
    }

    /// Index among the streams of the same initiator and direction, from 0.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl From<StreamId> for u64 {
    fn from(id: StreamId) -> Self {
        id.0
    }
}

impl From<u64> for StreamId {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "StreamId({} {:?} {:?} {})",
            self.0,
            self.initiator(),
            self.dir(),
            self.index()
        )
    }
}
