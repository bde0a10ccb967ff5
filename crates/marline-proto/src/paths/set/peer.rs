//! Requests about paths by the peer or the application (draft-ietf-quic-multipath-21, sections 3.3 and 4).

use marline_wire::frame::{MaxPathId, PathCidsBlocked, PathsBlocked};
use marline_wire::{PathId, TransportError};

use super::{PathSet, StatusFrame};
use crate::paths::extension::violation;
use crate::scheduling::path::PathStatus;
use crate::token::Notice;

impl PathSet {
    /// Rejects a frame of type `of` about a path beyond our limit (section 4).
    pub(crate) fn check(&self, path: PathId, of: u64) -> Result<(), TransportError> {
        match &self.extension {
            Some(extension) => extension.check(path, of),
            None => Ok(()),
        }
    }

    pub(crate) fn on_max_path_id(&mut self, frame: &MaxPathId) -> Result<(), TransportError> {
        if let Some(extension) = &mut self.extension {
            self.issue_ids |= extension.on_max_path_id(frame)?;
        }
        Ok(())
    }

    pub(crate) fn on_paths_blocked(&self, frame: &PathsBlocked) -> Result<(), TransportError> {
        match &self.extension {
            Some(extension) => extension.on_paths_blocked(frame),
            None => Ok(()),
        }
    }

    /// Checks PATH_CIDS_BLOCKED, which has no other effect: the peer gets all connection IDs that it may have anyway.
    pub(crate) fn on_path_cids_blocked(
        &mut self,
        frame: &PathCidsBlocked,
    ) -> Result<(), TransportError> {
        let Some(extension) = &mut self.extension else {
            return Ok(());
        };
        extension.check(frame.path_id, PathCidsBlocked::TYPE)?;
        let local = match self.list.by_id(frame.path_id) {
            Some(at) => Some(&self.list[at].local_cids),
            None => extension
                .reserve
                .get_mut(frame.path_id)
                .map(|path| &path.local),
        };
        if local.is_some_and(|local| frame.next_sequence > local.next_sequence()) {
            return Err(violation(
                "the sequence number exceeds that of the next connection ID",
                PathCidsBlocked::TYPE,
            ));
        }
        Ok(())
    }

    /// Sets the status of a path, and notifies the peer. No effect if there is no such path.
    pub(crate) fn set_status(&mut self, id: PathId, status: PathStatus) {
        let Some(extension) = &mut self.extension else {
            return;
        };
        let preference = match self.list.by_id(id) {
            Some(at) if self.list[at].is_abandoned() => return,
            Some(at) => &mut self.list[at].preference,
            None if id > extension.last_usable() => return,
            None => match extension.reserve.get_mut(id) {
                Some(reserved) => &mut reserved.preference,
                None => return,
            },
        };
        if let Some(sequence) = preference.set(status) {
            extension.notices.announce(Notice::Status {
                path: id,
                status,
                sequence,
            });
        }
    }

    /// Handles a status frame; returns whether the status of an existing path has changed.
    pub(crate) fn on_status(&mut self, frame: &StatusFrame) -> Result<bool, TransportError> {
        let Some(extension) = &mut self.extension else {
            return Ok(false);
        };
        extension.check(frame.path, frame.frame_type)?;
        let open = self.list.by_id(frame.path);
        let preference = match open {
            Some(at) => Some(&mut self.list[at].preference),
            None => extension
                .reserve
                .get_mut(frame.path)
                .map(|path| &mut path.preference),
        };
        let is_news = preference.is_some_and(|known| known.on_frame(frame.status, frame.sequence));
        Ok(is_news && open.is_some_and(|at| !self.list[at].is_abandoned()))
    }
}
