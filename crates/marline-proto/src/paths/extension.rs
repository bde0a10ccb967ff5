//! The negotiated multipath extension (draft-ietf-quic-multipath-21): limits on paths, and notices to the peer.

use marline_wire::frame::{MaxPathId, PathsBlocked};
use marline_wire::{ErrorCode, PathId, Side, TransportError};

use super::{LocalCids, Notices, Reserve, Reserved};
use crate::config::MultipathConfig;
use crate::limits::PATHS;
use crate::time::Instant;
use crate::token::Notice;

/// The reason why a path cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenPathError {
    /// The connection has a single path: the handshake is not confirmed, or multipath was not negotiated.
    #[error("multipath is not negotiated")]
    NotNegotiated,
    /// Only clients open paths.
    #[error("only clients open paths")]
    NotClient,
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// The server forbids other paths to its address.
    #[error("the server permits no other path to its address")]
    Forbidden,
    /// The limit on paths is reached. Another attempt may succeed after a path was abandoned:
    /// [`Event::PathsAvailable`](crate::Event::PathsAvailable) reports it.
    #[error("the limit on paths is reached")]
    LimitReached,
    /// Connection IDs for the path are missing. Another attempt may succeed a round trip later:
    /// [`Event::PathsAvailable`](crate::Event::PathsAvailable) reports it.
    #[error("no connection IDs for another path have arrived yet")]
    NoConnectionIds,
}

/// The reason why a path cannot be abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbandonPathError {
    /// There is no such path.
    #[error("no such path")]
    NoSuchPath,
    /// It is the last path: close the connection instead.
    #[error("it is the only path")]
    LastPath,
}

/// The limits of both ends, and the state of paths that are not open.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) config: MultipathConfig,
    /// The largest path ID that the peer may use.
    ours: PathId,
    /// The largest path ID that we may use.
    theirs: PathId,
    /// The peer's initial maximum path ID, which is a lower bound of later ones.
    theirs_at_first: PathId,
    pub(super) reserve: Reserve,
    pub(super) notices: Notices,
    /// Paths that were abandoned before they were open.
    unopened: Vec<Unopened>,
    /// Forgotten paths whose PATH_ABANDON the peer has not acknowledged.
    unacknowledged: Vec<PathId>,
    /// Whether an attempt to open a path failed.
    path_wanted: bool,
    /// Client: number of paths still to be opened besides the first.
    siblings_due: u32,
}

/// A path abandoned before it was open: its IDs stay ours until it is forgotten.
#[derive(Debug)]
struct Unopened {
    id: PathId,
    local: LocalCids,
    until: Instant,
}

/// A forgotten path with its former connection IDs.
#[derive(Debug)]
pub(crate) struct ForgottenPath {
    pub(crate) id: PathId,
    pub(crate) local: LocalCids,
}

impl Extension {
    /// The state after both ends have negotiated multipath; `theirs` is the peer's maximum path ID.
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

    /// The largest path ID that we may use.
    pub(super) fn last_usable(&self) -> PathId {
        self.theirs
    }

    /// Rejects a frame of type `of` about a path beyond our limit (section 4).
    pub(super) fn check(&self, path: PathId, of: u64) -> Result<(), TransportError> {
        if path <= self.ours {
            return Ok(());
        }
        Err(violation("a path beyond the limit", of))
    }

    /// Handles MAX_PATH_ID; returns whether the peer allows more paths than before.
    pub(super) fn on_max_path_id(&mut self, frame: &MaxPathId) -> Result<bool, TransportError> {
        if frame.maximum < self.theirs_at_first {
            return Err(violation(
                "the maximum path ID was decreased",
                MaxPathId::TYPE,
            ));
        }
        let is_more = frame.maximum > self.theirs;
        self.theirs = self.theirs.max(frame.maximum);
        Ok(is_more)
    }

    /// Handles PATHS_BLOCKED: the limit is raised only when a path is forgotten.
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

    /// Records that an attempt to open a path failed.
    pub(super) fn set_path_wanted(&mut self) {
        self.path_wanted = true;
    }

    /// Whether a path can be opened after an attempt failed; `true` once.
    pub(super) fn take_wanted_path(&mut self) -> bool {
        let can_be_had = self.path_wanted && self.has_ready_path();
        self.path_wanted &= !can_be_had;
        can_be_had
    }

    /// Whether another path besides the first is to be opened now; it then counts as opened.
    pub(super) fn take_due_sibling(&mut self) -> bool {
        let is_due = self.siblings_due > 0 && self.has_ready_path();
        self.siblings_due -= u32::from(is_due);
        is_due
    }

    /// The path to open next: the first for which both ends have issued connection IDs. If there is
    /// none, PATHS_BLOCKED or PATH_CIDS_BLOCKED is sent to the peer.
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

    /// Called when we abandon an open path.
    pub(super) fn on_abandoned(&mut self, path: PathId, error: ErrorCode) {
        self.notices.forget(path);
        self.notices.announce(Notice::Abandon { path, error });
    }

    /// Handles the peer's abandonment of a path that was not open, to be forgotten at `until`; returns
    /// whether there is one.
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

    /// Removes and returns the unopened paths that are to be forgotten by `now`.
    pub(super) fn take_forgotten(&mut self, now: Instant) -> Vec<ForgottenPath> {
        self.unopened
            .extract_if(.., |path| path.until <= now)
            .map(|path| ForgottenPath {
                id: path.id,
                local: path.local,
            })
            .collect()
    }

    /// Called when a path is forgotten: the peer may open another one, but not before it has acknowledged
    /// our PATH_ABANDON. This bounds the number of these frames by the initial limit on paths.
    pub(super) fn on_forgotten(&mut self, path: PathId) {
        if self.notices.is_abandoning(path) {
            self.unacknowledged.push(path);
        } else {
            self.allow_another();
        }
    }

    /// Handles the acknowledgment of a notice. Returns whether the peer may open another path now.
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
    /// The largest path ID that the peer may use.
    pub(super) fn last_allowed(&self) -> PathId {
        self.ours
    }

    /// Number of paths that are not open and not forgotten.
    pub(super) fn len(&self) -> usize {
        self.reserve.iter().count() + self.unopened.len()
    }
}

#[cold]
pub(super) fn violation(reason: &'static str, of: u64) -> TransportError {
    TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason).in_frame(of)
}
