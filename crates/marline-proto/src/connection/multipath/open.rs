//! A path begins (section 3.1): the client opens it, both ends validate it.

use marline_wire::{ConnectionId, PathId};

use super::Multipath;
use crate::congestion::ConnectionKind;
use crate::connection::Connection;
use crate::connection::events::Event;
use crate::connection::path::{Ids, Path, Stage};
use crate::connection::receive::Arrival;
use crate::connection::slots::Slot;
use crate::paths::{AmplificationLimit, Notice, RemoteCids, Reserved, Tuple};
use crate::recovery::{FirstWindow, Recovery};
use crate::time::Instant;
use crate::tuple::FourTuple;

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
    /// The server wants no other way to its address.
    #[error("the server allows no other path to its address")]
    Forbidden,
    /// No more paths are allowed. Another attempt may succeed after one was abandoned:
    /// [`Event::PathsAvailable`] tells.
    #[error("no more paths are allowed")]
    LimitReached,
    /// The connection IDs for it are still on their way. Another attempt may succeed a round trip later:
    /// [`Event::PathsAvailable`] tells.
    #[error("there are no connection IDs for another path yet")]
    NoConnectionIds,
}

impl Connection {
    /// Client: opens a path between these addresses; returns its ID.
    ///
    /// It is validated first, then it carries data: [`Event::PathValidated`] tells. Several paths may
    /// share their addresses.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened now.
    pub fn open_path(&mut self, now: Instant, tuple: FourTuple) -> Result<PathId, OpenPathError> {
        let id = self.begin_path(now, tuple)?;
        self.after_input(now);
        Ok(id)
    }

    /// Client: opens the paths beside the first that the settings ask for, once both ends have what it
    /// takes. What the peer refuses is not asked for again.
    pub(in crate::connection) fn open_siblings(&mut self, now: Instant) {
        // A server that would rather be talked to elsewhere is probed there first.
        while self.is_confirmed()
            && self.main().tuples.probed.is_none()
            && let Some(multipath) = &mut self.multipath
            && multipath.siblings_due > 0
            && multipath.has_ready_path()
        {
            multipath.siblings_due -= 1;
            let addresses = self.main().tuples.active.addresses;
            // Nobody waits for it.
            let _ = self.begin_path(now, addresses);
        }
    }

    fn begin_path(&mut self, now: Instant, tuple: FourTuple) -> Result<PathId, OpenPathError> {
        if !self.lifecycle.is_open() {
            return Err(OpenPathError::Closed);
        }
        if self.side.is_server() {
            return Err(OpenPathError::NotClient);
        }
        let Some(multipath) = &mut self.multipath else {
            return Err(OpenPathError::NotNegotiated);
        };
        if !self.progress.is_confirmed() {
            multipath.path_wanted = true;
            return Err(OpenPathError::NotNegotiated);
        }
        let to_handshake = tuple.remote == self.progress.remote();
        if self.peer.disable_active_migration && to_handshake {
            return Err(OpenPathError::Forbidden);
        }
        let id = multipath.next_path()?;
        let taken = multipath.reserve.take(id);
        let Some((reserved, remote)) = taken.and_then(split) else {
            return Err(OpenPathError::NoConnectionIds);
        };
        let Some(local) = reserved.local.iter().next() else {
            return Err(OpenPathError::NoConnectionIds);
        };
        let at = self.add_path(now, (reserved, remote), local, tuple);
        // Nobody has asked us to come: no limit holds us.
        self.paths[at].tuples.active.amplification = AmplificationLimit::validated();
        Ok(id)
    }

    /// Server: the client has opened a path, with an authentic packet to `destination`.
    pub(in crate::connection) fn accept_path(
        &mut self,
        now: Instant,
        id: PathId,
        destination: ConnectionId,
        arrival: &Arrival,
    ) -> Option<Slot> {
        let reserved = self.multipath.as_mut()?.reserve.take(id)?;
        let at = self.add_path(now, split(reserved)?, destination, arrival.tuple);
        let limit = &mut self.paths[at].tuples.active.amplification;
        limit.on_received(arrival.datagram as u64);
        self.paths[at].counters.received.count(arrival.datagram);
        Some(at)
    }

    /// Whether a client may open the path, and we could answer.
    pub(in crate::connection) fn may_accept(&mut self, id: PathId) -> bool {
        if !self
            .server
            .as_ref()
            .is_some_and(|server| server.config.migration)
        {
            return false;
        }
        let reserved = self
            .multipath
            .as_mut()
            .and_then(|multipath| multipath.reserve.get_mut(id));
        reserved.is_some_and(|path| path.remote.is_some())
    }

    fn add_path(
        &mut self,
        now: Instant,
        (reserved, mut remote_cids): (Reserved, RemoteCids),
        active_local_cid: ConnectionId,
        addresses: FourTuple,
    ) -> Slot {
        let is_valid = |path: &Path| {
            let active = &path.tuples.active;
            path.stage == Stage::Open
                && active.addresses == addresses
                && active.amplification.is_validated()
                && active.validation.is_none()
        };
        let known = self.paths.iter().find(|path| is_valid(path));
        let known = known.map(|path| (path.tuples.active.mtu.clone(), *path.recovery.rtt()));
        let is_known = known.is_some();
        let mut local_cids = reserved.local;
        local_cids.set_limit(self.peer.active_connection_id_limit);
        self.issue_ids = true;
        remote_cids.begin_use();
        let mut tuple = self.new_tuple(addresses);
        tuple.mtu.set_peer_limit(self.peer.max_udp_payload_size);
        let first = self.first_window_at(now, &tuple);
        if let Some((mtu, _)) = &known {
            tuple.mtu.adopt(mtu);
        }
        let initial_rtt = known
            .filter(|(_, rtt)| rtt.has_sample())
            .map_or(self.config.initial_rtt, |(_, rtt)| rtt.smoothed());
        let recovery = Recovery::new(self.recovery_config(first, tuple.mtu.current(), initial_rtt));
        let skip_at = self.dice.first_skip(&self.config);
        let mut ack_policy = (self.config.ack_policy)();
        if let Some(requested) = self.ack_request.requested() {
            ack_policy.on_frequency(requested);
        }
        let ids = Ids {
            local: local_cids,
            remote: remote_cids,
            active_local: active_local_cid,
        };
        let mut path = Path::new(reserved.id, ids, tuple, recovery, ack_policy, skip_at);
        path.preference = reserved.preference;
        path.stage = Stage::Opening;
        let at = self.paths.insert(path);
        self.mailbox
            .application
            .push_back(Event::PathOpened(reserved.id));
        self.tell_path(now, at);
        self.tell_first_window(now, at);
        if is_known {
            self.paths[at].tuples.active.amplification = AmplificationLimit::validated();
            self.paths[at].ping_due = true;
            self.on_path_valid(now, at);
        } else {
            let validation = self.validation(now, at);
            self.paths[at].tuples.active.validation = Some(validation);
        }
        at
    }

    pub(in crate::connection) fn first_window_at(
        &self,
        now: Instant,
        tuple: &Tuple,
    ) -> FirstWindow {
        let kind = ConnectionKind {
            peer: tuple.addresses.remote,
            ..self.kind(now, true)
        };
        let policy = &self.config.initial_window;
        FirstWindow {
            bytes: policy.window(&kind),
            default: policy.window_before_handshake(&kind),
        }
    }

    /// A path has proven to work: it may carry data.
    pub(in crate::connection) fn on_path_valid(&mut self, now: Instant, at: Slot) {
        let path = &mut self.paths[at];
        if path.stage == Stage::Opening {
            path.stage = Stage::Open;
            path.recovery.reset_pto_count();
            let id = path.id;
            self.mailbox.application.push_back(Event::PathValidated(id));
            self.relieve_silent_paths(now, at);
            self.join_group(now, at);
        }
    }
}

impl Multipath {
    fn has_ready_path(&self) -> bool {
        let mut allowed = self.reserve.iter().filter(|path| path.id <= self.theirs);
        allowed.any(Reserved::is_ready)
    }

    /// The path to open next: the first for which both ends have issued connection IDs. If there is
    /// none, the peer is told what is missing.
    fn next_path(&mut self) -> Result<PathId, OpenPathError> {
        let theirs = self.theirs;
        let mut allowed = self.reserve.iter().filter(|path| path.id <= theirs);
        let Some(first) = allowed.next() else {
            self.path_wanted = true;
            if theirs < self.ours {
                self.notices.tell(Notice::PathsBlocked(theirs));
            }
            return Err(OpenPathError::LimitReached);
        };
        let ready = std::iter::once(first)
            .chain(allowed)
            .find(|path| path.is_ready());
        self.path_wanted = ready.is_none();
        if let Some(ready) = ready {
            return Ok(ready.id);
        }
        if first.remote.is_none() {
            let path = first.id;
            self.notices.tell(Notice::CidsBlocked {
                path,
                next_sequence: 0,
            });
        }
        Err(OpenPathError::NoConnectionIds)
    }
}

impl Connection {
    /// Tells the application that wanted a path when it can have one.
    pub(in crate::connection) fn tell_paths_available(&mut self) {
        let Some(multipath) = self.multipath.as_mut().filter(|wants| wants.path_wanted) else {
            return;
        };
        let theirs = multipath.theirs;
        let mut allowed = multipath.reserve.iter().filter(|path| path.id <= theirs);
        if self.progress.is_confirmed() && allowed.any(Reserved::is_ready) {
            multipath.path_wanted = false;
            self.mailbox.application.push_back(Event::PathsAvailable);
        }
    }
}

/// What is taken out of the reserve, and the peer's IDs.
fn split(mut reserved: Reserved) -> Option<(Reserved, RemoteCids)> {
    let remote = reserved.remote.take()?;
    Some((reserved, remote))
}
