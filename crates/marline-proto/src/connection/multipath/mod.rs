//! Several paths in one connection (draft-ietf-quic-multipath-21): what exists only where both ends
//! want it.
//!
//! | question | file |
//! | --- | --- |
//! | how does a path begin? | `open` |
//! | how does it end? | `close` |
//! | which connection IDs has it? | `ids` |
//! | which path carries what? | `choose` |
//! | which path answers, and what of those that do not? | `live` |
//! | which path carries what another one has? | `reinject` |
//! | what do paths of one 4-tuple have in common? | `beside`, `groups` |

mod beside;
mod choose;
mod close;
mod groups;
mod ids;
mod live;
mod open;
mod reinject;

use marline_wire::frame::{MaxPathId, PathAck, PathCidsBlocked, PathsBlocked};
use marline_wire::{ErrorCode, PathId, Side, StreamId, TransportError};

pub use close::AbandonPathError;
pub use open::OpenPathError;

use super::Connection;
use super::events::Event;
use super::receive::Opened;
use super::slots::Slot;
use crate::level::SpaceId;
use crate::limits::PATHS;
use crate::paths::{LocalCids, Notice, Notices, Reserve};
use crate::scheduling::path::{PathScheduler, PathStatus, PathView, Reinjection, StreamView};
use crate::streams::Segment;
use crate::time::Instant;
use groups::Groups;

/// What a connection keeps beside its paths.
#[derive(Debug)]
pub(super) struct Multipath {
    /// The last path that the peer may use.
    ours: PathId,
    /// The last path that we may use.
    theirs: PathId,
    /// What the peer allowed at first: it may not take it back.
    theirs_at_first: PathId,
    pub(super) reserve: Reserve,
    pub(super) notices: Notices,
    /// Paths that were abandoned before they were open.
    unopened: Vec<Unopened>,
    /// Whether a path could not be opened that was wanted.
    path_wanted: bool,
    /// Which path carries stream data.
    scheduler: Box<dyn PathScheduler>,
    reinjection: Option<Reinjection>,
    seen: Seen,
    /// Client: paths that are still to be opened beside the first.
    siblings_due: u32,
    /// The bundles of paths, if this end coordinates such.
    groups: Option<Box<Groups>>,
}

/// What the scheduler saw last: kept, lest every packet need memory.
#[derive(Debug, Default)]
struct Seen {
    paths: Vec<PathView>,
    streams: Vec<StreamView>,
    ids: Vec<StreamId>,
    segments: Vec<Segment>,
}

/// A path that was abandoned before it was open: until it is forgotten, its IDs are ours.
#[derive(Debug)]
struct Unopened {
    id: PathId,
    local: LocalCids,
    until: Option<Instant>,
}

impl Multipath {
    /// Refuses a frame of type `of` about a path beyond those that we allow (section 4).
    fn check(&self, path: PathId, of: u64) -> Result<(), TransportError> {
        if path <= self.ours {
            return Ok(());
        }
        Err(violation("a path beyond the limit", of))
    }
}

#[cfg(test)]
impl Multipath {
    /// The last path that the peer may use.
    pub(super) fn last_allowed(&self) -> PathId {
        self.ours
    }

    /// Paths that are not open and not forgotten.
    pub(super) fn len(&self) -> usize {
        self.reserve.iter().count() + self.unopened.len()
    }
}

#[cold]
fn violation(reason: &'static str, of: u64) -> TransportError {
    TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason).in_frame(of)
}

impl Connection {
    /// Whether both ends take several paths; known once the handshake is complete.
    pub fn is_multipath(&self) -> bool {
        self.multipath.is_some()
    }

    /// Checks what the peer says of several paths (section 2.1).
    pub(super) fn check_multipath(&self, theirs: Option<u32>) -> Result<(), TransportError> {
        let has_empty_id = self.progress.peer_cid().is_none_or(|id| id.is_empty());
        if theirs.is_some() && self.takes_multipath() && has_empty_id {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "several paths with a connection ID of no bytes",
            ));
        }
        Ok(())
    }

    fn takes_multipath(&self) -> bool {
        self.config.multipath.is_some() && !self.progress.local_cid().is_empty()
    }

    /// The handshake is complete: if both ends want several paths, they have them.
    pub(super) fn begin_multipath(&mut self) {
        let (Some(config), Some(theirs)) = (&self.config.multipath, self.peer.initial_max_path_id)
        else {
            return;
        };
        if !self.takes_multipath() {
            return;
        }
        let (ours, theirs) = (PathId(config.last_path()), PathId(theirs));
        let mut reserve = Reserve::new();
        reserve.extend(ours);
        self.multipath = Some(Box::new(Multipath {
            ours,
            theirs,
            theirs_at_first: theirs,
            reserve,
            notices: Notices::default(),
            unopened: Vec::new(),
            path_wanted: false,
            scheduler: (config.scheduler)(),
            reinjection: config.reinjection.map(Reinjection::new),
            seen: Seen::default(),
            siblings_due: match self.side {
                Side::Client => config.same_tuple_paths.clamp(1, PATHS) - 1,
                Side::Server => 0,
            },
            groups: config.bundle_paths.clone().map(Groups::new),
        }));
        self.issue_ids = true;
    }

    pub(super) fn on_path_ack(
        &mut self,
        now: Instant,
        frame: &PathAck<'_>,
        packet: &Opened,
    ) -> Result<(), TransportError> {
        if let Some(multipath) = &self.multipath {
            multipath.check(frame.path_id, frame.frame_type())?;
        }
        match self.paths.by_id(frame.path_id) {
            Some(at) => self.on_ack(now, at, SpaceId::Data, &frame.ack, packet),
            None => Ok(()),
        }
    }

    pub(super) fn on_max_path_id(&mut self, frame: &MaxPathId) -> Result<(), TransportError> {
        let Some(multipath) = &mut self.multipath else {
            return Ok(());
        };
        if frame.maximum < multipath.theirs_at_first {
            return Err(violation("takes back paths", MaxPathId::TYPE));
        }
        if frame.maximum > multipath.theirs {
            multipath.theirs = frame.maximum;
            self.issue_ids = true;
        }
        Ok(())
    }

    /// The peer would like more paths than it may have: it gets one when one is forgotten.
    pub(super) fn on_paths_blocked(&self, frame: &PathsBlocked) -> Result<(), TransportError> {
        match &self.multipath {
            Some(multipath) => multipath.check(frame.limit, PathsBlocked::TYPE),
            None => Ok(()),
        }
    }

    /// The peer would like more connection IDs: it gets all that it may have anyhow.
    pub(super) fn on_path_cids_blocked(
        &mut self,
        frame: &PathCidsBlocked,
    ) -> Result<(), TransportError> {
        let Some(multipath) = &mut self.multipath else {
            return Ok(());
        };
        multipath.check(frame.path_id, PathCidsBlocked::TYPE)?;
        let open = self.paths.by_id(frame.path_id);
        let local = match open {
            Some(at) => Some(&self.paths[at].local_cids),
            None => multipath
                .reserve
                .get_mut(frame.path_id)
                .map(|path| &path.local),
        };
        if local.is_some_and(|local| frame.next_sequence > local.next_sequence()) {
            return Err(violation(
                "waits for a connection ID after the next",
                PathCidsBlocked::TYPE,
            ));
        }
        Ok(())
    }

    /// Says how a path is to be used, to the peer too: a backup carries data only while no other path
    /// works. Nothing happens if there is no such path.
    pub fn set_path_status(&mut self, id: PathId, status: PathStatus) {
        let Some(multipath) = &mut self.multipath else {
            return;
        };
        let preference = match self.paths.by_id(id) {
            Some(at) if self.paths[at].is_abandoned() => return,
            Some(at) => &mut self.paths[at].preference,
            None if id > multipath.theirs => return,
            None => match multipath.reserve.get_mut(id) {
                Some(reserved) => &mut reserved.preference,
                None => return,
            },
        };
        if let Some(sequence) = preference.set(status) {
            multipath.notices.tell(Notice::Status {
                path: id,
                status,
                sequence,
            });
        }
    }

    /// PATH_STATUS_BACKUP or PATH_STATUS_AVAILABLE, of type `of`.
    pub(super) fn on_path_status(
        &mut self,
        id: PathId,
        (status, sequence): (PathStatus, u64),
        of: u64,
    ) -> Result<(), TransportError> {
        let Some(multipath) = &mut self.multipath else {
            return Ok(());
        };
        multipath.check(id, of)?;
        let open = self.paths.by_id(id);
        let preference = match open {
            Some(at) => Some(&mut self.paths[at].preference),
            None => multipath
                .reserve
                .get_mut(id)
                .map(|path| &mut path.preference),
        };
        let is_news = preference.is_some_and(|known| known.on_frame(status, sequence));
        if is_news && open.is_some_and(|at: Slot| !self.paths[at].is_abandoned()) {
            self.mailbox
                .application
                .push_back(Event::PathStatus { id, status });
        }
        Ok(())
    }
}
