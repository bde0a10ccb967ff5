//! The multipath extension, once both ends have negotiated it (draft-ietf-quic-multipath-21): which paths may
//! be opened, and what the peer has to learn of them.

use marline_wire::frame::{MaxPathId, PathsBlocked};
use marline_wire::{ErrorCode, PathId, Side, TransportError};

use super::{LocalCids, Notice, Notices, Reserve, Reserved};
use crate::config::MultipathConfig;
use crate::limits::PATHS;
use crate::time::Instant;

/// Why a path cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenPathError {
    /// The connection has one path only: the handshake is not confirmed, or one end wants no more.
    #[error("the connection does not use several paths")]
    NotNegotiated,
    /// Only clients open paths.
    #[error("only clients open paths")]
    NotClient,
    /// The connection is over.
    #[error("the connection is over")]
    Closed,
    /// The server wants no other path to its address.
    #[error("the server allows no other path to its address")]
    Forbidden,
    /// No more paths are allowed. Another attempt may succeed after one was abandoned:
    /// [`Event::PathsAvailable`](crate::Event::PathsAvailable) reports it.
    #[error("no more paths are allowed")]
    LimitReached,
    /// The connection IDs for it have not arrived. Another attempt may succeed a round trip later:
    /// [`Event::PathsAvailable`](crate::Event::PathsAvailable) reports it.
    #[error("there are no connection IDs for another path yet")]
    NoConnectionIds,
}

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

/// What both ends allow, and what is kept of paths that are not open.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) config: MultipathConfig,
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
    /// Paths that are forgotten here, of which the peer has not acknowledged that they are abandoned.
    unacknowledged: Vec<PathId>,
    /// Whether a path could not be opened that was wanted.
    path_wanted: bool,
    /// Client: paths that are still to be opened beside the first.
    siblings_due: u32,
}

/// A path that was abandoned before it was open: until it is forgotten, its IDs are ours.
#[derive(Debug)]
struct Unopened {
    id: PathId,
    local: LocalCids,
    until: Instant,
}

/// A path that is forgotten, with the connection IDs by which it was known.
#[derive(Debug)]
pub(crate) struct ForgottenPath {
    pub(crate) id: PathId,
    pub(crate) local: LocalCids,
}

impl Extension {
    /// Both ends want several paths, the peer so many that `theirs` is the last.
    pub(super) fn new(config: &MultipathConfig, theirs: PathId, side: Side) -> Self {
        let ours = PathId(config.last_path());
        let mut reserve = Reserve::new();
        reserve.extend(ours);
        Self {
            config: config.clone(),
            ours,
            theirs,
            theirs_at_first: theirs,
            reserve,
            notices: Notices::default(),
            unopened: Vec::new(),
            unacknowledged: Vec::new(),
            path_wanted: false,
            siblings_due: match side {
                Side::Client => config.same_tuple_paths.clamp(1, PATHS) - 1,
                Side::Server => 0,
            },
        }
    }

    /// The last path that we may use.
    pub(super) fn last_usable(&self) -> PathId {
        self.theirs
    }

    /// Refuses a frame of type `of` about a path beyond those that we allow (section 4).
    pub(super) fn check(&self, path: PathId, of: u64) -> Result<(), TransportError> {
        if path <= self.ours {
            return Ok(());
        }
        Err(violation("a path beyond the limit", of))
    }

    /// Returns whether the peer allows more paths than before.
    pub(super) fn on_max_path_id(&mut self, frame: &MaxPathId) -> Result<bool, TransportError> {
        if frame.maximum < self.theirs_at_first {
            return Err(violation("takes back paths", MaxPathId::TYPE));
        }
        let is_more = frame.maximum > self.theirs;
        self.theirs = self.theirs.max(frame.maximum);
        Ok(is_more)
    }

    /// The peer would like more paths than it may have: it gets one when one is forgotten.
    pub(super) fn on_paths_blocked(&self, frame: &PathsBlocked) -> Result<(), TransportError> {
        self.check(frame.limit, PathsBlocked::TYPE)
    }

    fn allowed(&self) -> impl Iterator<Item = &Reserved> {
        let theirs = self.theirs;
        self.reserve.iter().filter(move |path| path.id <= theirs)
    }

    fn has_ready_path(&self) -> bool {
        self.allowed().any(Reserved::is_ready)
    }

    /// A path was wanted that could not be opened.
    pub(super) fn set_path_wanted(&mut self) {
        self.path_wanted = true;
    }

    /// Whether a path can be opened after an attempt failed; `true` once.
    pub(super) fn take_wanted_path(&mut self) -> bool {
        let can_be_had = self.path_wanted && self.has_ready_path();
        self.path_wanted &= !can_be_had;
        can_be_had
    }

    /// Whether another path beside the first is to be opened now; it counts as opened.
    pub(super) fn take_due_sibling(&mut self) -> bool {
        let is_due = self.siblings_due > 0 && self.has_ready_path();
        self.siblings_due -= u32::from(is_due);
        is_due
    }

    /// The path to open next: the first for which both ends have issued connection IDs. If there is
    /// none, a blocked frame is sent to the peer.
    pub(super) fn next_path(&mut self) -> Result<PathId, OpenPathError> {
        let mut allowed = self.allowed();
        let Some(first) = allowed.next() else {
            drop(allowed);
            self.path_wanted = true;
            if self.theirs < self.ours {
                self.notices.announce(Notice::PathsBlocked(self.theirs));
            }
            return Err(OpenPathError::LimitReached);
        };
        let (path, lacks_theirs) = (first.id, first.remote.is_none());
        let ready = std::iter::once(first)
            .chain(allowed)
            .find(|path| path.is_ready())
            .map(|path| path.id);
        self.path_wanted = ready.is_none();
        if let Some(ready) = ready {
            return Ok(ready);
        }
        if lacks_theirs {
            self.notices.announce(Notice::CidsBlocked {
                path,
                next_sequence: 0,
            });
        }
        Err(OpenPathError::NoConnectionIds)
    }

    /// We abandon a path that was open.
    pub(super) fn on_abandoned(&mut self, path: PathId, error: ErrorCode) {
        self.notices.forget(path);
        self.notices.announce(Notice::Abandon { path, error });
    }

    /// The peer abandons a path that was not open, to be forgotten at `until`; returns whether there is one.
    pub(super) fn on_unopened_abandoned(&mut self, id: PathId, until: Instant) -> bool {
        let Some(reserved) = self.reserve.take(id) else {
            return false;
        };
        self.notices.forget(id);
        if id <= self.theirs {
            self.notices.announce(Notice::Abandon {
                path: id,
                error: ErrorCode::NO_ERROR,
            });
        }
        self.unopened.push(Unopened {
            id,
            local: reserved.local,
            until,
        });
        true
    }

    pub(super) fn next_forgetting(&self) -> Option<Instant> {
        self.unopened.iter().map(|path| path.until).min()
    }

    /// Takes the paths that were never open and are to be forgotten by now.
    pub(super) fn take_forgotten(&mut self, now: Instant) -> Vec<ForgottenPath> {
        self.unopened
            .extract_if(.., |path| path.until <= now)
            .map(|path| ForgottenPath {
                id: path.id,
                local: path.local,
            })
            .collect()
    }

    /// A path is forgotten: the peer may have another one instead, but not before it has acknowledged our
    /// PATH_ABANDON. This way no more of these frames are due than paths are allowed at first.
    pub(super) fn on_forgotten(&mut self, path: PathId) {
        if self.notices.is_abandoning(path) {
            self.unacknowledged.push(path);
        } else {
            self.allow_another();
        }
    }

    /// The peer has received a notice. Returns whether it may have another path now.
    pub(super) fn on_notice_acked(&mut self, notice: &Notice) -> bool {
        self.notices.on_acked(notice);
        let Notice::Abandon { path, .. } = notice else {
            return false;
        };
        let position = self.unacknowledged.iter().position(|known| known == path);
        if let Some(position) = position {
            self.unacknowledged.swap_remove(position);
            self.allow_another();
        }
        position.is_some()
    }

    fn allow_another(&mut self) {
        self.ours.0 = self.ours.0.saturating_add(1);
        self.reserve.extend(self.ours);
        self.notices.announce(Notice::MaxPathId(self.ours));
    }
}

#[cfg(test)]
impl Extension {
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
pub(super) fn violation(reason: &'static str, of: u64) -> TransportError {
    TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason).in_frame(of)
}
