//! A path ends (section 3.4): either end abandons it, both say so, and some time later it is forgotten.

use marline_wire::frame::PathAbandon;
use marline_wire::{ErrorCode, PathId, TransportError};

use super::Unopened;
use crate::connection::Connection;
use crate::connection::events::{EndpointEvent, Event};
use crate::connection::path::Stage;
use crate::connection::slots::Slot;
use crate::level::SpaceId;
use crate::paths::{LocalCids, Notice};
use crate::time::Instant;

/// Probe timeouts after which an abandoned path is forgotten.
const MEMORY: u32 = 3;

/// Why a path cannot be abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbandonPathError {
    /// There is no such path.
    #[error("there is no such path")]
    NoSuchPath,
    /// The connection would be without one: close it instead.
    #[error("it is the only path")]
    LastPath,
}

impl Connection {
    /// Abandons a path. What was on its way there takes the other paths; the peer sees `error`
    /// ([`ErrorCode::APPLICATION_ABANDON_PATH`], for one).
    ///
    /// # Errors
    ///
    /// If there is no such path, or no other.
    pub fn abandon_path(
        &mut self,
        now: Instant,
        id: PathId,
        error: ErrorCode,
    ) -> Result<(), AbandonPathError> {
        let open = self.paths.by_id(id);
        let Some(at) = open.filter(|&at| !self.paths[at].is_abandoned()) else {
            return Err(AbandonPathError::NoSuchPath);
        };
        if self.multipath.is_none() || !self.has_open_path_beside(at) {
            return Err(AbandonPathError::LastPath);
        }
        self.end_path(now, at, error);
        self.after_input(now);
        Ok(())
    }

    pub(in crate::connection) fn has_open_path_beside(&self, at: Slot) -> bool {
        let mut others = self.paths.slots().filter(|&other| other != at);
        others.any(|other| self.paths[other].stage == Stage::Open)
    }

    pub(in crate::connection) fn on_path_abandon(
        &mut self,
        now: Instant,
        frame: &PathAbandon,
    ) -> Result<(), TransportError> {
        let until = now + self.pto() * MEMORY;
        let id = frame.path_id;
        let Some(multipath) = &mut self.multipath else {
            return Ok(());
        };
        multipath.check(id, PathAbandon::TYPE)?;
        if let Some(reserved) = multipath.reserve.take(id) {
            multipath.notices.forget(id);
            if id <= multipath.theirs {
                multipath.notices.tell(Notice::Abandon {
                    path: id,
                    error: ErrorCode::NO_ERROR,
                });
            }
            multipath.unopened.push(Unopened {
                id,
                local: reserved.local,
                until: Some(until),
            });
            return Ok(());
        }
        let Some(at) = self.paths.by_id(id) else {
            return Ok(());
        };
        if !self.paths[at].is_abandoned() {
            if self.paths[at].stage == Stage::Open && !self.has_open_path_beside(at) {
                return Err(TransportError::new(
                    ErrorCode::NO_VIABLE_PATH,
                    "the peer abandoned the only path",
                ));
            }
            self.end_path(now, at, frame.error_code);
        }
        if let Stage::Abandoned { until: known } = &mut self.paths[at].stage {
            known.get_or_insert(until);
        }
        Ok(())
    }

    /// Nothing is sent on a path any more, and the peer is told so.
    pub(in crate::connection) fn end_path(&mut self, now: Instant, at: Slot, error: ErrorCode) {
        if at == self.paths.main() {
            self.abandon_resume(now);
            self.tell_history(now);
        }
        self.return_outstanding(at);
        let path = &mut self.paths[at];
        path.stage = Stage::Abandoned { until: None };
        path.recovery.stop();
        path.tuples.active.validation = None;
        path.tuples.previous = None;
        path.tuples.probed = None;
        path.remote_cids.retire_all();
        let id = path.id;
        if let Some(multipath) = &mut self.multipath {
            multipath.notices.forget(id);
            multipath.notices.tell(Notice::Abandon { path: id, error });
        }
        self.paths.find_main();
        self.leave_group(at);
        self.mailbox
            .application
            .push_back(Event::PathClosed { id, error });
        self.tell_path_gone(now, id);
    }

    /// What a path has on its way and in its queue is due on the others.
    pub(in crate::connection) fn return_outstanding(&mut self, at: Slot) {
        self.give_back(at, SpaceId::Data);
        self.return_queue(at);
    }

    /// What waits for a path is to be assigned anew.
    pub(in crate::connection) fn return_queue(&mut self, at: Slot) {
        let path = &mut self.paths[at];
        for segment in path.queue.drain() {
            self.streams.return_segment(&segment);
        }
    }

    /// The peer that does not answer PATH_ABANDON has its time as well, from when it has heard ours.
    pub(in crate::connection) fn settle_abandoned(&mut self, now: Instant) {
        let Some(multipath) = &self.multipath else {
            return;
        };
        let until = now + self.pto() * MEMORY;
        for path in self.paths.iter_mut() {
            if let Stage::Abandoned {
                until: known @ None,
            } = &mut path.stage
                && !multipath.notices.is_abandoning(path.id)
            {
                *known = Some(until);
            }
        }
    }

    pub(in crate::connection) fn next_forgetting(&self) -> Option<Instant> {
        let multipath = self.multipath.as_ref()?;
        let unopened = multipath.unopened.iter().filter_map(|path| path.until);
        let abandoned = self.paths.iter().filter_map(|path| match path.stage {
            Stage::Abandoned { until } => until,
            Stage::Opening | Stage::Open => None,
        });
        unopened.chain(abandoned).min()
    }

    /// Forgets paths that were abandoned long enough ago; the peer may have others instead.
    pub(in crate::connection) fn forget_paths(&mut self, now: Instant) {
        let Some(multipath) = &mut self.multipath else {
            return;
        };
        let is_over = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        let mut gone: Vec<(PathId, LocalCids)> = multipath
            .unopened
            .extract_if(.., |path| is_over(path.until))
            .map(|path| (path.id, path.local))
            .collect();
        let abandoned = self.paths.remove_where(|path| match path.stage {
            Stage::Abandoned { until } => is_over(until),
            Stage::Opening | Stage::Open => false,
        });
        gone.extend(abandoned.into_iter().map(|path| (path.id, path.local_cids)));
        for (id, local) in gone {
            let retired = local.iter().map(EndpointEvent::Retired);
            self.mailbox.endpoint.extend(retired);
            if let Some(keys) = &mut self.keys.one_rtt {
                keys.forget_path(id);
            }
            multipath.ours.0 = multipath.ours.0.saturating_add(1);
            multipath.reserve.extend(multipath.ours);
            multipath.notices.tell(Notice::MaxPathId(multipath.ours));
            self.issue_ids = true;
        }
        self.issue_connection_ids();
    }
}
