//! Retransmission information: associates an acknowledged or lost packet with the modules that wrote its frames.

use marline_wire::PathId;

use crate::handshake::CryptoToken;
use crate::paths::Notice;
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
