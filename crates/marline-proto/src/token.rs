//! Retransmission information: associates an acknowledged or lost packet with the modules that wrote its frames.

use marline_wire::{ErrorCode, PathId};

use crate::datagrams::InFlight;
use crate::handshake::CryptoToken;
use crate::scheduling::path::PathStatus;
use crate::streams::{Segment, StreamToken};

/// A frame of a sent packet whose outcome is reported to the module that wrote it.
#[derive(Clone, Debug)]
pub(crate) enum Token {
    /// An ACK frame up to this number: older ranges need not be repeated once it is acknowledged.
    Ack {
        path: PathId,
        largest: u64,
    },
    Crypto(CryptoToken),
    Segment(Segment),
    /// A DATAGRAM frame, which is sent again only if the path fails.
    Datagram(InFlight),
    Control(StreamToken),
    NewConnectionId {
        path: PathId,
        sequence: u64,
    },
    RetireConnectionId {
        path: PathId,
        sequence: u64,
    },
    Notice(Notice),
    HandshakeDone,
    AddressValidation {
        sequence: u64,
    },
    AckFrequency {
        sequence: u64,
    },
}

impl Token {
    /// The segment of a STREAM frame.
    pub(crate) fn segment(&self) -> Option<Segment> {
        match self {
            Self::Segment(segment) => Some(*segment),
            _ => None,
        }
    }
}

/// A notice about a path. Of two on the same subject the later one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// MAX_PATH_ID: the largest path ID that the peer may use.
    MaxPathId(PathId),
    /// PATHS_BLOCKED: a path beyond this one is wanted.
    PathsBlocked(PathId),
    /// PATH_CIDS_BLOCKED: a path without connection IDs is wanted.
    CidsBlocked { path: PathId, next_sequence: u64 },
    /// PATH_ABANDON: the path is no longer used.
    Abandon { path: PathId, error: ErrorCode },
    /// PATH_STATUS: how a path is to be used.
    Status {
        path: PathId,
        status: PathStatus,
        sequence: u64,
    },
}
