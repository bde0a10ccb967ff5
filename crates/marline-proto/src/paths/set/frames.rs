//! Frames about connection IDs and paths, and their acknowledgment.

use marline_wire::PathId;

use super::PathSet;
use crate::paths::{LocalCids, Path, RemoteCids, Slot};
use crate::spaces::Sent;
use crate::token::{ReturnedToken, Token};

impl PathSet {
    /// Whether frames are due about connection IDs, or about paths themselves.
    pub(crate) fn has_frames(&self) -> bool {
        self.list.iter().any(Path::has_id_frames)
            || self.extension.as_ref().is_some_and(|extension| {
                let last = extension.last_usable();
                extension.notices.has_frames() || extension.reserve.has_frames(last)
            })
    }

    /// Writes them into a packet on path `at`.
    pub(crate) fn write_frames(&mut self, at: Slot, buf: &mut Vec<u8>, limit: usize) {
        let is_multipath = self.is_multipath();
        for of in self.list.slots() {
            let path = &mut self.list[of];
            if !path.has_id_frames() {
                continue;
            }
            let id = path.id;
            let named = is_multipath.then_some(id);
            let mut tokens = Vec::new();
            path.local_cids
                .write_frames(named, buf, limit, &mut |sequence| {
                    tokens.push(Token::NewConnectionId { path: id, sequence });
                });
            path.remote_cids
                .write_frames(named, buf, limit, &mut |sequence| {
                    tokens.push(Token::RetireConnectionId { path: id, sequence });
                });
            let sent = &mut self.list[at].space.sent;
            tokens.into_iter().for_each(|token| sent.push_token(token));
        }
        let Some(extension) = &mut self.extension else {
            return;
        };
        let sent: &mut Sent<Token> = &mut self.list[at].space.sent;
        extension.notices.write_frames(buf, limit, &mut |notice| {
            sent.push_token(Token::Notice(notice));
        });
        let last = extension.last_usable();
        for path in extension.reserve.up_to(last) {
            let id = path.id;
            path.local
                .write_frames(Some(id), buf, limit, &mut |sequence| {
                    sent.push_token(Token::NewConnectionId { path: id, sequence });
                });
            if let Some(remote) = &mut path.remote {
                remote.write_frames(Some(id), buf, limit, &mut |sequence| {
                    sent.push_token(Token::RetireConnectionId { path: id, sequence });
                });
            }
        }
    }

    /// Passes tokens returned on one path to the paths that they belong to.
    pub(crate) fn settle_returned(&mut self) {
        if self.returned.is_empty() {
            return;
        }
        let mut returned = std::mem::take(&mut self.returned);
        for token in returned.drain(..) {
            match token {
                ReturnedToken::Acked(token) => self.on_token_acked(&token),
                ReturnedToken::Lost(token) => self.on_token_lost(&token),
            }
        }
        self.returned = returned;
    }

    fn on_token_acked(&mut self, token: &Token) {
        match *token {
            Token::Notice(notice) => {
                if let Some(extension) = &mut self.extension {
                    self.issue_ids |= extension.on_notice_acked(&notice);
                }
            }
            Token::Ack { path, largest } => {
                if let Some(at) = self.list.by_id(path) {
                    self.list[at].space.received.on_ack_acked(largest);
                }
            }
            Token::NewConnectionId { path, sequence } => {
                if let Some(cids) = self.local_cids(path) {
                    cids.on_acked(sequence);
                }
            }
            Token::RetireConnectionId { path, sequence } => {
                if let Some(cids) = self.remote_cids(path) {
                    cids.on_acked(sequence);
                }
            }
            _ => {}
        }
    }

    fn on_token_lost(&mut self, token: &Token) {
        match *token {
            Token::Notice(notice) => {
                if let Some(extension) = &mut self.extension {
                    extension.notices.on_lost(&notice);
                }
            }
            Token::NewConnectionId { path, sequence } => {
                if let Some(cids) = self.local_cids(path) {
                    cids.on_lost(sequence);
                }
            }
            Token::RetireConnectionId { path, sequence } => {
                if let Some(cids) = self.remote_cids(path) {
                    cids.on_lost(sequence);
                }
            }
            _ => {}
        }
    }

    fn local_cids(&mut self, path: PathId) -> Option<&mut LocalCids> {
        if let Some(at) = self.list.by_id(path) {
            return Some(&mut self.list[at].local_cids);
        }
        let reserved = self.extension.as_mut()?.reserve.get_mut(path)?;
        Some(&mut reserved.local)
    }

    fn remote_cids(&mut self, path: PathId) -> Option<&mut RemoteCids> {
        if let Some(at) = self.list.by_id(path) {
            return Some(&mut self.list[at].remote_cids);
        }
        let reserved = self.extension.as_mut()?.reserve.get_mut(path)?;
        reserved.remote.as_mut()
    }
}
