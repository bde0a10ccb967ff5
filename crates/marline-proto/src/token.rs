//! Retransmission information: what leads from an acknowledged or lost packet to the modules that wrote its
//! frames.

use marline_wire::PathId;

use crate::handshake::CryptoToken;
use crate::paths::Notice;
use crate::streams::{Segment, StreamToken};

/// What a sent packet carried whose fate its module wants to know.
#[derive(Clone, Debug)]
pub(crate) enum Token {
    /// An ACK frame up to this number: older ranges need no repeating once it is acknowledged.
    Ack {
        path: PathId,
        largest: u64,
    },
    Crypto(CryptoToken),
    Segment(Segment),
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
    /// The piece of a stream that it stands for.
    pub(crate) fn segment(&self) -> Option<Segment> {
        match self {
            Self::Segment(segment) => Some(*segment),
            _ => None,
        }
    }
}

/// A token that concerns another path than the one that carried it, or none.
#[derive(Debug)]
pub(crate) enum ReturnedToken {
    Acked(Token),
    Lost(Token),
}
