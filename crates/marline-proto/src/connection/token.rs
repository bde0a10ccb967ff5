//! Return tickets: from a settled packet back to the rooms that wrote its frames.

use marline_wire::PathId;

use super::Connection;
use crate::handshake::{CryptoToken, Handshake};
use crate::paths::{LocalCids, Notice, RemoteCids};
use crate::spaces::Received;
use crate::streams::{Segment, StreamToken, Streams};

use crate::announce::Announcements;

/// What a sent packet carried that a room wants to hear about again.
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
    pub(super) fn segment(&self) -> Option<Segment> {
        match self {
            Self::Segment(segment) => Some(*segment),
            _ => None,
        }
    }
}

/// A ticket that leads to the rooms of another path than the one that carried it, or to none of a path.
#[derive(Debug)]
pub(super) enum Returned {
    Acked(Token),
    Lost(Token),
}

/// The modules that wrote the frames.
pub(super) struct FrameOwners<'a> {
    /// Whose the first three are.
    pub(super) path: PathId,
    pub(super) received: &'a mut Received,
    pub(super) local_cids: &'a mut LocalCids,
    pub(super) remote_cids: &'a mut RemoteCids,
    pub(super) handshake: &'a mut Handshake,
    pub(super) streams: &'a mut Streams,
    pub(super) announcements: &'a mut Announcements,
    pub(super) elsewhere: &'a mut Vec<Returned>,
}

impl FrameOwners<'_> {
    /// The peer has it.
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
            | Token::Notice(_) => self.elsewhere.push(Returned::Acked(token.clone())),
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
            Token::NewConnectionId { path, sequence } if *path == self.path => {
                self.local_cids.on_lost(*sequence);
            }
            Token::RetireConnectionId { path, sequence } if *path == self.path => {
                self.remote_cids.on_lost(*sequence);
            }
            Token::NewConnectionId { .. } | Token::RetireConnectionId { .. } | Token::Notice(_) => {
                self.elsewhere.push(Returned::Lost(token.clone()));
            }
            Token::HandshakeDone => self.announcements.handshake_done.on_lost(),
            Token::AddressValidation { sequence } => {
                self.announcements.new_token.on_lost(*sequence);
            }
            Token::AckFrequency { sequence } => self.announcements.ack_frequency.on_lost(*sequence),
        }
    }
}

impl Connection {
    /// Takes tickets to the rooms of the paths that they name.
    pub(super) fn settle_elsewhere(&mut self) {
        if self.elsewhere.is_empty() {
            return;
        }
        let mut returned = std::mem::take(&mut self.elsewhere);
        for ticket in returned.drain(..) {
            self.settle_ticket(&ticket);
        }
        self.elsewhere = returned;
    }

    fn settle_ticket(&mut self, ticket: &Returned) {
        let (Returned::Acked(token) | Returned::Lost(token)) = ticket;
        let is_acked = matches!(ticket, Returned::Acked(_));
        let (path, sequence) = match *token {
            Token::Notice(notice) => {
                if let Some(multipath) = &mut self.multipath {
                    match is_acked {
                        true => multipath.notices.on_acked(&notice),
                        false => multipath.notices.on_lost(&notice),
                    }
                }
                return;
            }
            Token::Ack { path, largest } => (path, largest),
            Token::NewConnectionId { path, sequence }
            | Token::RetireConnectionId { path, sequence } => (path, sequence),
            _ => return,
        };
        let (received, local, remote) = match self.paths.by_id(path) {
            Some(at) => {
                let path = &mut self.paths[at];
                let received = &mut path.space.received;
                (
                    Some(received),
                    &mut path.local_cids,
                    Some(&mut path.remote_cids),
                )
            }
            None => {
                let multipath = self.multipath.as_mut();
                match multipath.and_then(|multipath| multipath.reserve.get_mut(path)) {
                    Some(reserved) => (None, &mut reserved.local, reserved.remote.as_mut()),
                    None => return,
                }
            }
        };
        match (token, is_acked) {
            (Token::Ack { .. }, true) => {
                if let Some(received) = received {
                    received.on_ack_acked(sequence);
                }
            }
            (Token::NewConnectionId { .. }, true) => local.on_acked(sequence),
            (Token::NewConnectionId { .. }, false) => local.on_lost(sequence),
            (Token::RetireConnectionId { .. }, true) => {
                if let Some(remote) = remote {
                    remote.on_acked(sequence);
                }
            }
            (Token::RetireConnectionId { .. }, false) => {
                if let Some(remote) = remote {
                    remote.on_lost(sequence);
                }
            }
            _ => {}
        }
    }
}
