//! The connection IDs of all paths, including those that are not open.

use marline_wire::frame::{
    NewConnectionId, PathNewConnectionId, PathRetireConnectionId, RetireConnectionId,
};
use marline_wire::{ConnectionId, PathId, TransportError};

use super::PathSet;
use crate::config::EndpointConfig;
use crate::paths::extension::violation;
use crate::paths::{LocalCids, TokenChange};
use crate::rng::ConnectionRng;

impl PathSet {
    /// Records that the peer may be able to hold more of our connection IDs.
    pub(crate) fn want_ids(&mut self) {
        self.issue_ids = true;
    }

    /// Has all connection IDs of ours replaced by new ones.
    pub(crate) fn replace_ids(&mut self) {
        for path in self.list.iter_mut() {
            path.local_cids.replace_all();
        }
        if let Some(extension) = &mut self.extension {
            for path in extension.reserve.iter_mut() {
                path.local.replace_all();
            }
        }
        self.want_ids();
    }

    /// Whether there may be IDs to [issue](Self::issue_ids).
    pub(crate) fn is_issue_due(&self) -> bool {
        self.issue_ids
    }

    /// Issues the IDs that the peer may use, besides the one of the handshake; returns them.
    pub(crate) fn issue_ids(
        &mut self,
        endpoint: &EndpointConfig,
        rng: &mut ConnectionRng,
    ) -> Vec<ConnectionId> {
        self.issue_ids = false;
        let mut issued = Vec::new();
        let most = endpoint.ids_of_path();
        let mut issue = |cids: &mut LocalCids| {
            cids.retire_replaced();
            for _ in 0..cids.want_more(most) {
                let id = endpoint.connection_id(rng.secure());
                cids.issue(id, endpoint.reset_key.token(&id));
                issued.push(id);
            }
        };
        for path in self.list.iter_mut().filter(|path| !path.is_abandoned()) {
            issue(&mut path.local_cids);
        }
        if let Some(extension) = &mut self.extension {
            let last = extension.last_usable();
            for path in extension.reserve.up_to(last) {
                issue(&mut path.local);
            }
        }
        issued
    }

    /// Handles PATH_NEW_CONNECTION_ID for any path.
    pub(crate) fn on_path_new_connection_id(
        &mut self,
        frame: &PathNewConnectionId,
    ) -> Result<(), TransportError> {
        let PathNewConnectionId { path_id, issued } = frame;
        let Some(extension) = &mut self.extension else {
            return Ok(());
        };
        extension.check(*path_id, PathNewConnectionId::TYPE)?;
        let is_used_by_another = {
            let of_open = self.list.iter().filter(|path| path.id != *path_id);
            let of_reserve = extension.reserve.iter().filter(|path| path.id != *path_id);
            let mut others = of_open
                .map(|path| &path.remote_cids)
                .chain(of_reserve.filter_map(|path| path.remote.as_ref()));
            others.any(|remote| remote.has(&issued.id))
        };
        if is_used_by_another {
            return Err(violation(
                "a connection ID for two paths",
                PathNewConnectionId::TYPE,
            ));
        }
        match extension.reserve.get_mut(*path_id) {
            Some(reserved) => reserved.on_new_connection_id(issued),
            None => self.on_new_connection_id(*path_id, issued),
        }
    }

    /// Handles NEW_CONNECTION_ID, which may require others to be retired: a 4-tuple whose ID is retired takes another.
    pub(crate) fn on_new_connection_id(
        &mut self,
        path: PathId,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        let Some(at) = self.list.by_id(path) else {
            return Ok(());
        };
        let path = &mut self.list[at];
        if path.is_abandoned() {
            return Ok(());
        }
        let remote_cids = &mut path.remote_cids;
        remote_cids.on_new_connection_id(frame)?;
        for tuple in path.tuples.inactive() {
            if tuple
                .cid
                .is_some_and(|cid| !remote_cids.holds(cid.sequence))
            {
                tuple.cid = remote_cids.next_unused();
            }
        }
        Ok(())
    }

    /// Handles PATH_RETIRE_CONNECTION_ID for any path, in a packet to `destination`; returns the ID.
    pub(crate) fn on_path_retire_connection_id(
        &mut self,
        frame: &PathRetireConnectionId,
        destination: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        let Some(extension) = &mut self.extension else {
            return Ok(None);
        };
        extension.check(frame.path_id, PathRetireConnectionId::TYPE)?;
        let retire = RetireConnectionId {
            sequence: frame.sequence,
        };
        let Some(reserved) = extension.reserve.get_mut(frame.path_id) else {
            return self.on_retire_connection_id(frame.path_id, &retire, destination);
        };
        let retired = reserved.local.on_retire(&retire, destination)?;
        self.issue_ids |= retired.is_some();
        Ok(retired)
    }

    /// Handles RETIRE_CONNECTION_ID, in a packet to `destination`; returns the ID.
    pub(crate) fn on_retire_connection_id(
        &mut self,
        path: PathId,
        frame: &RetireConnectionId,
        destination: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        let Some(at) = self.list.by_id(path) else {
            return Ok(None);
        };
        let retired = self.list[at].local_cids.on_retire(frame, destination)?;
        self.issue_ids |= retired.is_some();
        Ok(retired)
    }

    /// The next change of the stateless reset tokens that apply to us.
    pub(crate) fn poll_token_change(&mut self) -> Option<TokenChange> {
        let mut changes = self.list.iter_mut();
        changes.find_map(|path| path.remote_cids.poll_token_change())
    }
}
