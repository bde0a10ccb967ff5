//! Return tickets: from a settled packet back to the rooms that wrote its frames.

use crate::handshake::{CryptoToken, Handshake};
use crate::paths::{LocalCids, RemoteCids};
use crate::spaces::Received;
use crate::streams::{Segment, StreamToken, Streams};

use crate::announce::Announcements;

/// What a sent packet carried that a room wants to hear about again.
#[derive(Clone, Debug)]
pub(crate) enum Token {
    /// An ACK frame up to this number: older ranges need no repeating once it is acknowledged.
    Ack {
        largest: u64,
    },
    Crypto(CryptoToken),
    Segment(Segment),
    Control(StreamToken),
    NewConnectionId {
        sequence: u64,
    },
    RetireConnectionId {
        sequence: u64,
    },
    HandshakeDone,
    AddressValidation {
        sequence: u64,
    },
    AckFrequency {
        sequence: u64,
    },
}

/// The rooms that tickets lead to.
pub(super) struct Rooms<'a> {
    pub(super) received: &'a mut Received,
    pub(super) handshake: &'a mut Handshake,
    pub(super) streams: &'a mut Streams,
    pub(super) local_cids: &'a mut LocalCids,
    pub(super) remote_cids: &'a mut RemoteCids,
    pub(super) announcements: &'a mut Announcements,
}

impl Rooms<'_> {
    /// The peer has it.
    #[inline]
    pub(super) fn on_acked(&mut self, token: &Token) {
        match token {
            Token::Segment(segment) => self.streams.on_segment_acked(segment),
            Token::Ack { largest } => self.received.on_ack_acked(*largest),
            Token::Crypto(token) => self.handshake.on_acked(token),
            Token::Control(token) => self.streams.on_token_acked(token),
            Token::NewConnectionId { sequence } => self.local_cids.on_acked(*sequence),
            Token::RetireConnectionId { sequence } => self.remote_cids.on_acked(*sequence),
            Token::HandshakeDone => self.announcements.handshake_done.on_acked(),
            Token::AddressValidation { sequence } => {
                self.announcements.new_token.on_acked(*sequence);
            }
            Token::AckFrequency { sequence } => {
                self.announcements.ack_frequency.on_acked(*sequence);
            }
        }
    }

    /// It may not have arrived: due again.
    #[inline]
    pub(super) fn on_lost(&mut self, token: &Token) {
        match token {
            Token::Segment(segment) => self.streams.on_segment_lost(segment),
            Token::Ack { .. } => {}
            Token::Crypto(token) => self.handshake.on_lost(token),
            Token::Control(token) => self.streams.on_token_lost(token),
            Token::NewConnectionId { sequence } => self.local_cids.on_lost(*sequence),
            Token::RetireConnectionId { sequence } => self.remote_cids.on_lost(*sequence),
            Token::HandshakeDone => self.announcements.handshake_done.on_lost(),
            Token::AddressValidation { sequence } => {
                self.announcements.new_token.on_lost(*sequence);
            }
            Token::AckFrequency { sequence } => self.announcements.ack_frequency.on_lost(*sequence),
        }
    }
}
