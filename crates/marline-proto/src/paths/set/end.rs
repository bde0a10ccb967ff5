//! End of paths (draft-ietf-quic-multipath-21, section 3.4).

use marline_wire::frame::PathAbandon;
use marline_wire::{ErrorCode, PathId, TransportError};

use super::PathSet;
use crate::paths::extension::{AbandonPathError, ForgottenPath};
use crate::paths::{Path, PathList, Slot, Stage};
use crate::time::Instant;

impl PathSet {
    /// The slot of a path to be abandoned.
    ///
    /// # Errors
    ///
    /// If there is no such path, or it is the only one.
    pub(crate) fn find_abandonable(&self, id: PathId) -> Result<Slot, AbandonPathError> {
        let open = self.list.by_id(id);
        let Some(at) = open.filter(|&at| !self.list[at].is_abandoned()) else {
            return Err(AbandonPathError::NoSuchPath);
        };
        if self.extension.is_none() || !self.list.has_other_open(at) {
            return Err(AbandonPathError::LastPath);
        }
        Ok(at)
    }

    /// Handles PATH_ABANDON; the path is to be forgotten at `until`. Returns the path to abandon, if it is open here.
    ///
    /// # Errors
    ///
    /// NO_VIABLE_PATH if it is the only one, PROTOCOL_VIOLATION if its ID is beyond our limit.
    pub(crate) fn on_path_abandon(
        &mut self,
        frame: &PathAbandon,
        until: Instant,
    ) -> Result<Option<Slot>, TransportError> {
        let id = frame.path_id;
        let Some(extension) = &mut self.extension else {
            return Ok(None);
        };
        extension.check(id, PathAbandon::TYPE)?;
        if extension.on_unopened_abandoned(id, until) {
            return Ok(None);
        }
        let Some(at) = self.list.by_id(id) else {
            return Ok(None);
        };
        if let Stage::Abandoned { until: known } = &mut self.list[at].stage {
            known.get_or_insert(until);
            return Ok(None);
        }
        if self.list[at].is_open() && !self.list.has_other_open(at) {
            return Err(TransportError::new(
                ErrorCode::NO_VIABLE_PATH,
                "the peer abandoned the only path",
            ));
        }
        Ok(Some(at))
    }

    /// Abandons a path, and notifies the peer. The path is forgotten at `until`, if that is known.
    pub(crate) fn abandon(&mut self, at: Slot, error: ErrorCode, until: Option<Instant>) {
        let path = &mut self.list[at];
        path.abandon();
        path.stage = Stage::Abandoned { until };
        let id = path.id;
        if let Some(extension) = &mut self.extension {
            extension.on_abandoned(id, error);
        }
        self.list.find_main();
        self.leave_bundle(at);
    }

    /// Sets the time `until` which abandoned paths are kept if the peer acknowledged our PATH_ABANDON
    /// but has not sent its own.
    pub(crate) fn settle_abandoned(&mut self, until: impl FnOnce(&PathList) -> Instant) {
        let Some(extension) = &self.extension else {
            return;
        };
        let waits = |path: &Path| {
            path.stage == Stage::Abandoned { until: None }
                && !extension.notices.is_abandoning(path.id)
        };
        if !self.list.iter().any(waits) {
            return;
        }
        let until = until(&self.list);
        for path in self.list.iter_mut().filter(|path| waits(path)) {
            path.stage = Stage::Abandoned { until: Some(until) };
        }
    }

    /// Time at which the next abandoned path is forgotten.
    pub(crate) fn next_forgetting(&self) -> Option<Instant> {
        let extension = self.extension.as_ref()?;
        let unopened = extension.next_forgetting().into_iter();
        unopened.chain(self.list.next_forgetting()).min()
    }

    /// Forgets paths that were abandoned long enough ago, so that the peer may open others.
    pub(crate) fn forget(&mut self, now: Instant) -> Vec<ForgottenPath> {
        let Some(extension) = &mut self.extension else {
            return Vec::new();
        };
        let mut forgotten = extension.take_forgotten(now);
        let abandoned = self.list.remove_where(|path| match path.stage {
            Stage::Abandoned { until } => until.is_some_and(|until| until <= now),
            Stage::Opening | Stage::Open => false,
        });
        forgotten.extend(abandoned.into_iter().map(|path| ForgottenPath {
            id: path.id,
            local: path.local_cids,
        }));
        for path in &forgotten {
            extension.on_forgotten(path.id);
            self.issue_ids = true;
        }
        forgotten
    }
}
