//! Connection IDs, by path (section 3.2).

use marline_wire::frame::{
    NewConnectionId, PathNewConnectionId, PathRetireConnectionId, RetireConnectionId,
};
use marline_wire::{PathId, TransportError};

use super::violation;
use crate::connection::Connection;
use crate::connection::events::EndpointEvent;
use crate::connection::path::Path;
use crate::connection::receive::Opened;
use crate::connection::slots::Slot;
use crate::connection::token::Token;
use crate::paths::LocalCids;
use crate::spaces::Sent;

impl Path {
    /// Whether there is anything to say of its IDs.
    fn has_id_frames(&self) -> bool {
        !self.is_abandoned() && (self.local_cids.has_frames() || self.remote_cids.has_frames())
    }
}

impl Connection {
    /// The IDs by which the peer may reach us, beside the one of the handshake.
    pub(in crate::connection) fn issue_connection_ids(&mut self) {
        if !self.issue_ids || self.keys.one_rtt.is_none() {
            return;
        }
        self.issue_ids = false;
        let len = self.progress.local_cid().len();
        let mut issue = |cids: &mut LocalCids| {
            for _ in 0..cids.want_more() {
                let id = self.dice.connection_id(len);
                cids.issue(id, self.endpoint.reset_key.token(&id));
                self.mailbox.endpoint.push_back(EndpointEvent::Issued(id));
            }
        };
        for path in self.paths.iter_mut().filter(|path| !path.is_abandoned()) {
            issue(&mut path.local_cids);
        }
        let Some(multipath) = &mut self.multipath else {
            return;
        };
        let theirs = multipath.theirs;
        for path in multipath.reserve.up_to(theirs) {
            issue(&mut path.local);
        }
    }

    pub(in crate::connection) fn on_path_new_connection_id(
        &mut self,
        frame: &PathNewConnectionId,
    ) -> Result<(), TransportError> {
        let PathNewConnectionId { path_id, issued } = frame;
        let Some(multipath) = &mut self.multipath else {
            return Ok(());
        };
        multipath.check(*path_id, PathNewConnectionId::TYPE)?;
        let is_used_elsewhere = {
            let of_open = self.paths.iter().filter(|path| path.id != *path_id);
            let of_reserve = multipath.reserve.iter().filter(|path| path.id != *path_id);
            let mut elsewhere = of_open
                .map(|path| &path.remote_cids)
                .chain(of_reserve.filter_map(|path| path.remote.as_ref()));
            elsewhere.any(|remote| remote.has(&issued.id))
        };
        if is_used_elsewhere {
            return Err(violation(
                "a connection ID for two paths",
                PathNewConnectionId::TYPE,
            ));
        }
        match multipath.reserve.get_mut(*path_id) {
            Some(reserved) => reserved.on_new_connection_id(issued),
            None => self.on_new_connection_id(*path_id, issued),
        }
    }

    pub(in crate::connection) fn on_path_retire_connection_id(
        &mut self,
        frame: &PathRetireConnectionId,
        packet: &Opened,
    ) -> Result<(), TransportError> {
        let Some(multipath) = &mut self.multipath else {
            return Ok(());
        };
        multipath.check(frame.path_id, PathRetireConnectionId::TYPE)?;
        let retire = RetireConnectionId {
            sequence: frame.sequence,
        };
        let Some(reserved) = multipath.reserve.get_mut(frame.path_id) else {
            return self.on_retire_connection_id(frame.path_id, &retire, packet);
        };
        if let Some(id) = reserved.local.on_retire(&retire, &packet.dcid)? {
            self.issue_ids = true;
            self.mailbox.endpoint.push_back(EndpointEvent::Retired(id));
        }
        Ok(())
    }

    /// The peer issued an ID, and may want others back: a 4-tuple whose ID is gone takes another.
    pub(in crate::connection) fn on_new_connection_id(
        &mut self,
        path: PathId,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        let Some(at) = self.paths.by_id(path) else {
            return Ok(());
        };
        let path = &mut self.paths[at];
        if path.is_abandoned() {
            return Ok(());
        }
        let remote_cids = &mut path.remote_cids;
        remote_cids.on_new_connection_id(frame)?;
        for tuple in path.tuples.inactive() {
            if tuple
                .cid
                .is_some_and(|(sequence, _)| !remote_cids.holds(sequence))
            {
                tuple.cid = remote_cids.next_unused();
            }
        }
        Ok(())
    }

    pub(in crate::connection) fn on_retire_connection_id(
        &mut self,
        path: PathId,
        frame: &RetireConnectionId,
        packet: &Opened,
    ) -> Result<(), TransportError> {
        let Some(at) = self.paths.by_id(path) else {
            return Ok(());
        };
        let local_cids = &mut self.paths[at].local_cids;
        if let Some(id) = local_cids.on_retire(frame, &packet.dcid)? {
            self.issue_ids = true;
            self.mailbox.endpoint.push_back(EndpointEvent::Retired(id));
        }
        Ok(())
    }

    /// Whether there is anything to say of connection IDs, or of paths themselves.
    pub(in crate::connection) fn has_path_frames(&self) -> bool {
        self.paths.iter().any(Path::has_id_frames)
            || self.multipath.as_ref().is_some_and(|multipath| {
                let theirs = multipath.theirs;
                multipath.notices.has_frames() || multipath.reserve.has_frames(theirs)
            })
    }

    /// Says it, in a packet that `at` carries.
    pub(in crate::connection) fn write_path_frames(
        &mut self,
        at: Slot,
        buf: &mut Vec<u8>,
        limit: usize,
    ) {
        let told = self.multipath.is_some();
        for of in self.paths.slots() {
            let path = &mut self.paths[of];
            if !path.has_id_frames() {
                continue;
            }
            let id = path.id;
            let named = told.then_some(id);
            let mut tokens = Vec::new();
            path.local_cids
                .write_frames(named, buf, limit, &mut |sequence| {
                    tokens.push(Token::NewConnectionId { path: id, sequence });
                });
            path.remote_cids
                .write_frames(named, buf, limit, &mut |sequence| {
                    tokens.push(Token::RetireConnectionId { path: id, sequence });
                });
            let sent = &mut self.paths[at].space.sent;
            tokens.into_iter().for_each(|token| sent.push_token(token));
        }
        let Some(multipath) = &mut self.multipath else {
            return;
        };
        let sent: &mut Sent<Token> = &mut self.paths[at].space.sent;
        multipath.notices.write_frames(buf, limit, &mut |notice| {
            sent.push_token(Token::Notice(notice));
        });
        let theirs = multipath.theirs;
        for path in multipath.reserve.up_to(theirs) {
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
}
