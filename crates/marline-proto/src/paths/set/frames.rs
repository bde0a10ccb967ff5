//! Frames about connection IDs and paths, and their acknowledgment.

use marline_wire::PathId;

use super::PathSet;
use crate::paths::{LocalCids, Path, RemoteCids, Slot};
use crate::spaces::Sent;
use crate::token::{Notice, Token};

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

    /// Handles the acknowledgment of a notice.
    pub(crate) fn on_notice_acked(&mut self, notice: &Notice) {
        if let Some(extension) = &mut self.extension {
            self.issue_ids |= extension.on_notice_acked(notice);
        }
    }

    /// Makes a lost notice due again, unless it is outdated.
    pub(crate) fn on_notice_lost(&mut self, notice: &Notice) {
        if let Some(extension) = &mut self.extension {
            extension.notices.on_lost(notice);
        }
    }

    /// Our connection IDs of an open or reserved path; `None` if it is forgotten.
    pub(crate) fn local_cids(&mut self, path: PathId) -> Option<&mut LocalCids> {
        if let Some(at) = self.list.by_id(path) {
            return Some(&mut self.list[at].local_cids);
        }
        let reserved = self.extension.as_mut()?.reserve.get_mut(path)?;
        Some(&mut reserved.local)
    }

    /// The peer's connection IDs of an open or reserved path.
    pub(crate) fn remote_cids(&mut self, path: PathId) -> Option<&mut RemoteCids> {
        if let Some(at) = self.list.by_id(path) {
            return Some(&mut self.list[at].remote_cids);
        }
        let reserved = self.extension.as_mut()?.reserve.get_mut(path)?;
        reserved.remote.as_mut()
    }
}
