//! Passes the token of an acknowledged or lost frame to the module that wrote the frame.

use marline_wire::PathId;

use crate::announce::Announcements;
use crate::handshake::Handshake;
use crate::paths::{LocalCids, RemoteCids};
use crate::spaces::Received;
use crate::streams::Streams;
use crate::token::{ReturnedToken, Token};

/// The modules that wrote the frames of one path's packets.
pub(super) struct FrameOwners<'a> {
    /// The path that `received`, `local_cids` and `remote_cids` belong to.
    pub(super) path: PathId,
    pub(super) received: &'a mut Received,
    pub(super) local_cids: &'a mut LocalCids,
    pub(super) remote_cids: &'a mut RemoteCids,
    pub(super) handshake: &'a mut Handshake,
    pub(super) streams: &'a mut Streams,
    pub(super) announcements: &'a mut Announcements,
    /// Tokens of other paths, to be processed later.
    pub(super) returned: &'a mut Vec<ReturnedToken>,
}

impl FrameOwners<'_> {
    /// Reports the frame as acknowledged.
    #[inline]
    pub(super) fn on_acked(&mut self, token: &Token) {
        match token {
            Token::Segment(segment) => self.streams.on_segment_acked(segment),
            Token::Ack { path, largest } if *path == self.path => {
                self.received.on_ack_acked(*largest);
            }
            Token::Crypto(token) => self.handshake.on_acked(token),
            Token::Control(token) => self.streams.on_token_acked(token),
            Token::NewConnectionId { path, sequence } if *path == self.path => {
                self.local_cids.on_acked(*sequence);
            }
            Token::RetireConnectionId { path, sequence } if *path == self.path => {
                self.remote_cids.on_acked(*sequence);
            }
            Token::Ack { .. }
            | Token::NewConnectionId { .. }
            | Token::RetireConnectionId { .. }
            | Token::Notice(_) => self.returned.push(ReturnedToken::Acked(token.clone())),
            Token::HandshakeDone => self.announcements.handshake_done.on_acked(),
            Token::AddressValidation { sequence } => {
                self.announcements.new_token.on_acked(*sequence);
            }
            Token::AckFrequency { sequence } => {
                self.announcements.ack_frequency.on_acked(*sequence);
            }
        }
    }

    /// Reports the frame as lost: its content is due again.
    #[inline]
    pub(super) fn on_lost(&mut self, token: &Token) {
        match token {
            Token::Segment(segment) => self.streams.on_segment_lost(segment),
            Token::Ack { .. } => {}
            Token::Crypto(token) => self.handshake.on_lost(token),
            Token::Control(token) => self.streams.on_token_lost(token),
            Token::NewConnectionId { path, sequence } if *path == self.path => {
                self.local_cids.on_lost(*sequence);
            }
            Token::RetireConnectionId { path, sequence } if *path == self.path => {
                self.remote_cids.on_lost(*sequence);
            }
            Token::NewConnectionId { .. } | Token::RetireConnectionId { .. } | Token::Notice(_) => {
                self.returned.push(ReturnedToken::Lost(token.clone()));
            }
            Token::HandshakeDone => self.announcements.handshake_done.on_lost(),
            Token::AddressValidation { sequence } => {
                self.announcements.new_token.on_lost(*sequence);
            }
            Token::AckFrequency { sequence } => self.announcements.ack_frequency.on_lost(*sequence),
        }
    }
}
