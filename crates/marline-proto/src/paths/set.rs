//! The paths of a connection: those that exist, those that may be opened, and what is kept of all of them.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use marline_wire::frame::{
    MaxPathId, NewConnectionId, PathAbandon, PathCidsBlocked, PathNewConnectionId,
    PathRetireConnectionId, PathsBlocked, RetireConnectionId,
};
use marline_wire::{ConnectionId, ErrorCode, PathId, Side, TransportError};

use super::bundles::{Joining, PathBundles};
use super::detection::{Detection, Finding};
use super::extension::{AbandonPathError, Extension, ForgottenPath, OpenPathError, violation};
use super::list::{PathList, Slot};
use super::path::{Path, PathIds, Stage};
use super::{AmplificationLimit, LocalCids, RemoteCids, Reserved, TokenChange, Tuple, Validation};
use crate::ack::Requested;
use crate::config::{MultipathConfig, TransportConfig};
use crate::congestion::{ControllerConfig, ControllerFactory, Pacer};
use crate::coordination::bundle::MemberDirective;
use crate::crypto::ResetKey;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::recovery::{FirstWindow, Outcome, Recovery, RecoveryConfig};
use crate::rng::ConnectionRng;
use crate::scheduling::path::PathStatus;
use crate::spaces::Sent;
use crate::time::Instant;
use crate::token::{ReturnedToken, Token};
use crate::tuple::FourTuple;

/// The paths of a connection. Without the multipath extension there is one.
///
/// The list of paths is read and changed in place ([`PathList`]); what concerns more than one path, or paths
/// that are not open, has methods here. They decide, and return what is to be done elsewhere.
#[derive(Debug)]
pub(crate) struct PathSet {
    list: PathList,
    /// Once both ends want several paths.
    extension: Option<Box<Extension>>,
    /// If this end coordinates paths of one 4-tuple.
    bundles: Option<Box<PathBundles>>,
    /// Makes the controllers of paths.
    controllers: Arc<dyn ControllerFactory>,
    /// Tokens that one path brought back for another, or for none.
    returned: Vec<ReturnedToken>,
    /// 4-tuples that ever were, but for the first.
    generation: u32,
    /// Whether the peer may be able to hold more of our connection IDs.
    issue_ids: bool,
    /// Whether the main path leads to another host than that of the handshake.
    moved: bool,
}

/// The path of the handshake.
pub(crate) struct FirstPath {
    pub(crate) addresses: FourTuple,
    /// Whether the peer's address is proven.
    pub(crate) is_validated: bool,
    pub(crate) local_cid: ConnectionId,
    pub(crate) remote_cid: ConnectionId,
    pub(crate) first_window: FirstWindow,
}

/// What a new path begins with.
pub(crate) struct NewPath<'a> {
    pub(crate) openable: Openable,
    /// The ID of ours that the peer uses first.
    pub(crate) active_local: ConnectionId,
    pub(crate) addresses: FourTuple,
    pub(crate) config: &'a TransportConfig,
    pub(crate) first_window: FirstWindow,
    /// The peer's limits of connection IDs, and of bytes in a datagram.
    pub(crate) active_connection_id_limit: u64,
    pub(crate) max_udp_payload_size: u64,
    pub(crate) max_ack_delay: Duration,
    /// How the peer wants to be acknowledged, if it has said so.
    pub(crate) ack_request: Option<&'a Requested>,
}

/// A path taken from the reserve, for which both ends hold connection IDs.
#[derive(Debug)]
pub(crate) struct Openable {
    reserved: Reserved,
    remote: RemoteCids,
}

impl Openable {
    fn new(mut reserved: Reserved) -> Option<Self> {
        let remote = reserved.remote.take()?;
        Some(Self { reserved, remote })
    }

    /// The connection ID by which the peer will reach us there first.
    pub(crate) fn first_local_cid(&self) -> Option<ConnectionId> {
        self.reserved.local.iter().next()
    }
}

/// A path, and where tokens go that are not its own.
pub(crate) struct PathAccess<'a> {
    pub(crate) path: &'a mut Path,
    pub(crate) returned: &'a mut Vec<ReturnedToken>,
}

/// A frame PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusFrame {
    pub(crate) path: PathId,
    pub(crate) status: PathStatus,
    pub(crate) sequence: u64,
    pub(crate) frame_type: u64,
}

/// Whose a packet is, by its destination connection ID.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    Path(Slot),
    /// It opens a path, if it is authentic.
    Opens(PathId),
    Nobody,
}

impl PathSet {
    /// The path of a handshake. Draws a seed for its controller, and the first packet number to leave out.
    pub(crate) fn new(config: &TransportConfig, first: FirstPath, rng: &mut ConnectionRng) -> Self {
        let mut tuple = Tuple::new(config, 0, first.addresses);
        if first.is_validated {
            tuple.amplification = AmplificationLimit::validated();
        }
        let controllers = config.controller.of_connection();
        let controllers = controllers.unwrap_or_else(|| Arc::clone(&config.controller));
        let recovery = recovery_config(
            config,
            &*controllers,
            PathStart {
                first_window: first.first_window,
                datagram_size: MIN_DATAGRAM_SIZE,
                initial_rtt: config.initial_rtt,
                seed: rng.seed(),
            },
        );
        let ids = PathIds {
            local: LocalCids::new(first.local_cid),
            remote: RemoteCids::new(first.remote_cid),
            active_local: first.local_cid,
        };
        let skip_at = rng.first_skip(config);
        let path = Path::new(
            PathId::INITIAL,
            ids,
            tuple,
            Recovery::new(recovery),
            (config.ack_policy)(),
            skip_at,
        );
        Self {
            list: PathList::new(path),
            extension: None,
            bundles: None,
            controllers,
            returned: Vec::new(),
            generation: 0,
            issue_ids: false,
            moved: false,
        }
    }

    /// Whether both ends take several paths; known once the handshake is complete.
    pub(crate) fn is_multipath(&self) -> bool {
        self.extension.is_some()
    }

    /// Whether this end coordinates the paths of a 4-tuple.
    pub(crate) fn is_coordinating(&self) -> bool {
        self.bundles.is_some()
    }

    /// Whether the main path leads to another host than that of the handshake.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Both ends want several paths, the peer so many that `theirs` is the last.
    pub(crate) fn begin_multipath(&mut self, config: &MultipathConfig, theirs: PathId, side: Side) {
        self.extension = Some(Box::new(Extension::new(config, theirs, side)));
        let bundles = config.bundle_paths.clone();
        self.bundles = bundles.map(|bundles| Box::new(PathBundles::new(bundles)));
        self.issue_ids = true;
    }

    /// A path, and where tokens go that are not its own.
    pub(crate) fn access(&mut self, at: Slot) -> PathAccess<'_> {
        PathAccess {
            path: &mut self.list[at],
            returned: &mut self.returned,
        }
    }

    /// Whose a packet to `destination` is, once there may be several paths.
    pub(crate) fn owner(&self, destination: &ConnectionId, accepts_paths: bool) -> Owner {
        let Some(extension) = &self.extension else {
            return Owner::Path(Slot::FIRST);
        };
        if let Some(at) = self.list.by_destination(destination) {
            return Owner::Path(at);
        }
        match extension.reserve.by_destination(destination) {
            Some(id) if accepts_paths && extension.reserve.is_usable(id) => Owner::Opens(id),
            Some(_) => Owner::Nobody,
            // It may be a stateless reset.
            None => Owner::Path(self.list.main_slot()),
        }
    }

    // ---- paths begin

    /// Client: takes out the path to open next.
    ///
    /// # Errors
    ///
    /// Why there is none; the peer learns what is missing.
    pub(crate) fn take_next(&mut self, is_confirmed: bool) -> Result<Openable, OpenPathError> {
        let Some(extension) = &mut self.extension else {
            return Err(OpenPathError::NotNegotiated);
        };
        if !is_confirmed {
            extension.set_path_wanted();
            return Err(OpenPathError::NotNegotiated);
        }
        let id = extension.next_path()?;
        let taken = extension.reserve.take(id);
        taken
            .and_then(Openable::new)
            .ok_or(OpenPathError::NoConnectionIds)
    }

    /// Server: takes out the path that the client opens.
    pub(crate) fn take_for_client(&mut self, id: PathId) -> Option<Openable> {
        let reserved = self.extension.as_mut()?.reserve.take(id)?;
        Openable::new(reserved)
    }

    /// Adds a path, to be validated; returns where it stands. Draws a seed for its controller, and the first
    /// packet number to leave out.
    ///
    /// Between addresses that another path has proven to work, it is as good as validated: it takes over what
    /// that one has found out of them, and only has to be [opened](Self::on_valid).
    pub(crate) fn add(
        &mut self,
        now: Instant,
        new: NewPath<'_>,
        rng: &mut ConnectionRng,
    ) -> AddedPath {
        let NewPath {
            config, addresses, ..
        } = new;
        let is_proven = |path: &&Path| {
            let active = &path.tuples.active;
            path.is_open()
                && active.addresses == addresses
                && active.amplification.is_validated()
                && active.validation.is_none()
        };
        let known = self.list.iter().find(is_proven);
        let known = known.map(|path| (path.tuples.active.mtu.clone(), *path.recovery.rtt()));
        let is_proven = known.is_some();
        let Openable { reserved, remote } = new.openable;
        let mut ids = PathIds {
            local: reserved.local,
            remote,
            active_local: new.active_local,
        };
        ids.local.set_limit(new.active_connection_id_limit);
        ids.remote.begin_use();
        self.issue_ids = true;
        let mut tuple = self.new_tuple(config, addresses);
        tuple.mtu.set_peer_limit(new.max_udp_payload_size);
        let mut initial_rtt = config.initial_rtt;
        if let Some((mtu, rtt)) = &known {
            tuple.mtu.adopt(mtu);
            if rtt.has_sample() {
                initial_rtt = rtt.smoothed();
            }
        }
        let start = PathStart {
            first_window: new.first_window,
            datagram_size: tuple.mtu.current(),
            initial_rtt,
            seed: rng.seed(),
        };
        let recovery = Recovery::new(recovery_config(config, &*self.controllers, start));
        let skip_at = rng.first_skip(config);
        let mut ack_policy = (config.ack_policy)();
        if let Some(requested) = new.ack_request {
            ack_policy.on_frequency(requested);
        }
        let mut path = Path::new(reserved.id, ids, tuple, recovery, ack_policy, skip_at);
        path.preference = reserved.preference;
        path.stage = Stage::Opening;
        let active = &mut path.tuples.active;
        if is_proven {
            active.amplification = AmplificationLimit::validated();
            path.ping_due = true;
        } else {
            let pto = path.recovery.pto(new.max_ack_delay);
            active.validation = Some(validation(now, pto, config));
        }
        AddedPath {
            at: self.list.insert(path),
            is_proven,
        }
    }

    /// A path has proven to work: it may carry data. Returns whether that is news.
    pub(crate) fn on_valid(&mut self, at: Slot) -> bool {
        let path = &mut self.list[at];
        let is_news = path.stage == Stage::Opening;
        if is_news {
            path.stage = Stage::Open;
            path.recovery.reset_pto_count();
        }
        is_news
    }

    /// Client: whether another path beside the first is to be opened now; it counts as opened.
    pub(crate) fn take_due_sibling(&mut self) -> bool {
        // A server that would rather be talked to elsewhere is probed there first.
        let is_probing = self.list.main().tuples.probed.is_some();
        let extension = self.extension.as_mut().filter(|_| !is_probing);
        extension.is_some_and(|extension| extension.take_due_sibling())
    }

    /// Whether a path can be opened that was wanted in vain; says so once.
    pub(crate) fn take_wanted_path(&mut self) -> bool {
        let extension = self.extension.as_mut();
        extension.is_some_and(|extension| extension.take_wanted_path())
    }

    // ---- paths end

    /// Where the path stands that is to be abandoned.
    ///
    /// # Errors
    ///
    /// If there is no such path, or no other.
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

    /// The peer abandons a path, which is to be forgotten at `until`. Returns the path to abandon, if it is
    /// open here.
    ///
    /// # Errors
    ///
    /// NO_VIABLE_PATH if it is the only one, PROTOCOL_VIOLATION if it is beyond our limit.
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

    /// Nothing is sent on a path any more, and the peer learns of it. The path is forgotten at `until`, if that
    /// is known.
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

    /// The peer that does not answer PATH_ABANDON has its time as well, `until` then, from when it has
    /// acknowledged ours.
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

    /// When the next abandoned path is forgotten.
    pub(crate) fn next_forgetting(&self) -> Option<Instant> {
        let extension = self.extension.as_ref()?;
        let unopened = extension.next_forgetting().into_iter();
        unopened.chain(self.list.next_forgetting()).min()
    }

    /// Forgets paths that were abandoned long enough ago; the peer may have others instead.
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
        for _ in &forgotten {
            extension.replace_forgotten();
            self.issue_ids = true;
        }
        forgotten
    }

    // ---- what the peer says of paths

    /// Refuses a frame of type `of` about a path beyond those that we allow (section 4).
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

    /// The peer would like more connection IDs: it gets all that it may have anyhow.
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
                "waits for a connection ID after the next",
                PathCidsBlocked::TYPE,
            ));
        }
        Ok(())
    }

    /// Sets how a path is to be used, for the peer too. Nothing happens if there is no such path.
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
            extension.notices.tell(super::Notice::Status {
                path: id,
                status,
                sequence,
            });
        }
    }

    /// Returns whether the peer wants a path that exists used in another way than before.
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

    // ---- connection IDs

    /// The peer may be able to hold more of our connection IDs.
    pub(crate) fn want_ids(&mut self) {
        self.issue_ids = true;
    }

    /// Issues the IDs of `len` bytes by which the peer may reach us, beside the one of the handshake; returns
    /// them.
    pub(crate) fn issue_ids(
        &mut self,
        len: usize,
        reset_key: &ResetKey,
        rng: &mut ConnectionRng,
    ) -> Vec<ConnectionId> {
        let mut issued = Vec::new();
        if !std::mem::take(&mut self.issue_ids) {
            return issued;
        }
        let mut issue = |cids: &mut LocalCids| {
            for _ in 0..cids.want_more() {
                let id = rng.connection_id(len);
                cids.issue(id, reset_key.token(&id));
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

    /// The peer issued an ID for any path.
    pub(crate) fn on_path_new_connection_id(
        &mut self,
        frame: &PathNewConnectionId,
    ) -> Result<(), TransportError> {
        let PathNewConnectionId { path_id, issued } = frame;
        let Some(extension) = &mut self.extension else {
            return Ok(());
        };
        extension.check(*path_id, PathNewConnectionId::TYPE)?;
        let is_used_elsewhere = {
            let of_open = self.list.iter().filter(|path| path.id != *path_id);
            let of_reserve = extension.reserve.iter().filter(|path| path.id != *path_id);
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
        match extension.reserve.get_mut(*path_id) {
            Some(reserved) => reserved.on_new_connection_id(issued),
            None => self.on_new_connection_id(*path_id, issued),
        }
    }

    /// The peer issued an ID, and may want others back: a 4-tuple whose ID is gone takes another.
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
                .is_some_and(|(sequence, _)| !remote_cids.holds(sequence))
            {
                tuple.cid = remote_cids.next_unused();
            }
        }
        Ok(())
    }

    /// The peer gives back an ID of any path, in a packet to `destination`; returns the ID.
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

    /// The peer gives back an ID, in a packet to `destination`; returns the ID.
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

    /// The changes in which stateless resets are for us.
    pub(crate) fn poll_token_change(&mut self) -> Option<TokenChange> {
        let mut changes = self.list.iter_mut();
        changes.find_map(|path| path.remote_cids.poll_token_change())
    }

    // ---- frames

    /// Whether frames are due about connection IDs, or about paths themselves.
    pub(crate) fn has_frames(&self) -> bool {
        self.list.iter().any(Path::has_id_frames)
            || self.extension.as_ref().is_some_and(|extension| {
                let last = extension.last_usable();
                extension.notices.has_frames() || extension.reserve.has_frames(last)
            })
    }

    /// Writes them into a packet that path `at` carries.
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

    /// Takes the tokens that came back on one path to the paths that they name.
    pub(crate) fn settle_returned(&mut self) {
        if self.returned.is_empty() {
            return;
        }
        let mut returned = std::mem::take(&mut self.returned);
        for token in returned.drain(..) {
            match token {
                ReturnedToken::Acked(token) => self.on_token_acked(&token),
                ReturnedToken::Lost(token) => self.on_token_lost(&token),
            }
        }
        self.returned = returned;
    }

    fn on_token_acked(&mut self, token: &Token) {
        match *token {
            Token::Notice(notice) => {
                if let Some(extension) = &mut self.extension {
                    extension.notices.on_acked(&notice);
                }
            }
            Token::Ack { path, largest } => {
                if let Some(at) = self.list.by_id(path) {
                    self.list[at].space.received.on_ack_acked(largest);
                }
            }
            Token::NewConnectionId { path, sequence } => {
                if let Some(cids) = self.local_cids(path) {
                    cids.on_acked(sequence);
                }
            }
            Token::RetireConnectionId { path, sequence } => {
                if let Some(cids) = self.remote_cids(path) {
                    cids.on_acked(sequence);
                }
            }
            _ => {}
        }
    }

    fn on_token_lost(&mut self, token: &Token) {
        match *token {
            Token::Notice(notice) => {
                if let Some(extension) = &mut self.extension {
                    extension.notices.on_lost(&notice);
                }
            }
            Token::NewConnectionId { path, sequence } => {
                if let Some(cids) = self.local_cids(path) {
                    cids.on_lost(sequence);
                }
            }
            Token::RetireConnectionId { path, sequence } => {
                if let Some(cids) = self.remote_cids(path) {
                    cids.on_lost(sequence);
                }
            }
            _ => {}
        }
    }

    fn local_cids(&mut self, path: PathId) -> Option<&mut LocalCids> {
        if let Some(at) = self.list.by_id(path) {
            return Some(&mut self.list[at].local_cids);
        }
        let reserved = self.extension.as_mut()?.reserve.get_mut(path)?;
        Some(&mut reserved.local)
    }

    fn remote_cids(&mut self, path: PathId) -> Option<&mut RemoteCids> {
        if let Some(at) = self.list.by_id(path) {
            return Some(&mut self.list[at].remote_cids);
        }
        let reserved = self.extension.as_mut()?.reserve.get_mut(path)?;
        reserved.remote.as_mut()
    }

    // ---- path failure detection

    /// An authentic packet came on a path.
    pub(crate) fn on_received(&mut self, now: Instant, at: Slot) {
        if self.is_multipath() {
            self.list[at].on_received(now);
        }
    }

    /// Something was acknowledged for the first time that a path carried. Returns whether it answers again
    /// that did not.
    pub(crate) fn on_answer(&mut self, at: Slot, outcome: &Outcome) -> bool {
        self.is_multipath() && self.list[at].on_answer(outcome)
    }

    /// Since when an acknowledgment that comes on `carrier` shows that the path of its packet works; `None` is
    /// ever. While the path does not answer, what arrived there before may be acknowledged elsewhere.
    pub(crate) fn proven_from(&self, at: Slot, carrier: Slot) -> Option<Instant> {
        let is_elsewhere = self.is_multipath() && carrier != at;
        self.list[at]
            .liveness
            .silent_since()
            .filter(|_| is_elsewhere)
    }

    /// The path works from now on: returns those that do not, and whose packets it is to carry as well.
    pub(crate) fn relieved_by(&mut self, now: Instant, by: Slot) -> Vec<Slot> {
        let is_only_one = self.list.others_live(by).next().is_none();
        let is_silent = |at: &Slot| self.list[*at].is_open() && !self.list[*at].is_live();
        let silent: Vec<Slot> = self.list.slots().filter(is_silent).collect();
        if is_only_one {
            for &at in &silent {
                self.list[at].liveness.on_company(now);
            }
        }
        silent
    }

    /// The longest pause between two probes of a path, while there are others.
    pub(crate) fn probe_interval(&self) -> Option<Duration> {
        let extension = self.extension.as_ref()?;
        (!self.list.is_single()).then_some(extension.config.probe_interval)
    }

    /// Whether a packet of `at` with nothing but acknowledgments is to ask for one itself.
    pub(crate) fn wants_ack_of_acks(&self, now: Instant, at: Slot) -> bool {
        self.is_multipath() && !self.list.is_single() && self.list[at].wants_ack_of_acks(now)
    }

    fn detection(&self, max_ack_delay: Duration) -> Option<Detection<'_>> {
        Some(Detection {
            list: &self.list,
            config: &self.extension.as_ref()?.config,
            max_ack_delay,
        })
    }

    /// When something may be found out about a path.
    pub(crate) fn next_finding(&self, at: Slot, max_ack_delay: Duration) -> Option<Instant> {
        self.detection(max_ack_delay)?.next_timeout(at)
    }

    /// What is found out about a path at `now`. What need not be done elsewhere is done.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        at: Slot,
        max_ack_delay: Duration,
    ) -> Option<Finding> {
        let finding = self.detection(max_ack_delay)?.find(now, at)?;
        match finding {
            Finding::GivenUp => {}
            Finding::Suspect => {
                let path = &mut self.list[at];
                path.liveness.doubt(now);
                path.recovery.request_probe();
            }
            Finding::Unclear => {
                self.list[at].liveness.ask();
                let others: Vec<Slot> = self.list.others_live(at).collect();
                for other in others {
                    let path = &mut self.list[other];
                    path.ping_due |= !path.space.sent.has_ack_eliciting_in_flight();
                }
            }
            Finding::Idle => self.list[at].ping_due = true,
        }
        Some(finding)
    }

    // ---- bundles of paths

    /// A path is valid: it joins those beside it, if this end coordinates them. Returns who is to be
    /// [admitted](Self::admit).
    pub(crate) fn join_bundle(&mut self, at: Slot) -> Option<Joining> {
        self.bundles.as_mut()?.join(&self.list, at)
    }

    /// A path becomes a member; returns what the engine has the members do, which they have done.
    pub(crate) fn admit(&mut self, joining: &Joining, at: Slot) -> Vec<MemberDirective<PathId>> {
        match &mut self.bundles {
            Some(bundles) => bundles.admit(&mut self.list, joining.bundle, at),
            None => Vec::new(),
        }
    }

    /// A path is abandoned, or leads to another host.
    pub(crate) fn leave_bundle(&mut self, at: Slot) {
        if let Some(bundles) = &mut self.bundles {
            bundles.leave(self.list[at].id);
            self.list[at].leave_bundle();
        }
    }

    /// Takes the next thing that the recovery of a path has shown to the engine of its bundle. Returns what that
    /// has the members do, which they have done; `None` if there was nothing.
    pub(crate) fn report_to_bundle(
        &mut self,
        now: Instant,
        at: Slot,
    ) -> Option<Vec<MemberDirective<PathId>>> {
        self.bundles.as_mut()?.report(now, &mut self.list, at)
    }

    // ---- 4-tuples

    /// A 4-tuple that the connection did not have before.
    pub(crate) fn new_tuple(&mut self, config: &TransportConfig, addresses: FourTuple) -> Tuple {
        self.generation += 1;
        Tuple::new(config, self.generation, addresses)
    }

    /// A validation of a 4-tuple of a path that begins now.
    pub(crate) fn new_validation(
        &self,
        now: Instant,
        at: Slot,
        max_ack_delay: Duration,
        config: &TransportConfig,
    ) -> Validation {
        validation(now, self.list[at].recovery.pto(max_ack_delay), config)
    }

    /// The main path leads to another host than that of the handshake.
    pub(crate) fn set_moved(&mut self) {
        self.moved = true;
    }

    /// What the recovery of a path begins with that leads to another host from now on.
    pub(crate) fn fresh_recovery(
        &self,
        config: &TransportConfig,
        at: Slot,
        first_window: FirstWindow,
        rng: &mut ConnectionRng,
    ) -> RecoveryConfig {
        let start = PathStart {
            first_window,
            datagram_size: self.list[at].tuples.active.mtu.current(),
            initial_rtt: config.initial_rtt,
            seed: rng.seed(),
        };
        recovery_config(config, &*self.controllers, start)
    }
}

/// A path that was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedPath {
    pub(crate) at: Slot,
    /// Whether its addresses have proven to work.
    pub(crate) is_proven: bool,
}

impl Deref for PathSet {
    type Target = PathList;

    #[inline]
    fn deref(&self) -> &PathList {
        &self.list
    }
}

impl DerefMut for PathSet {
    #[inline]
    fn deref_mut(&mut self) -> &mut PathList {
        &mut self.list
    }
}

#[cfg(test)]
impl PathSet {
    /// The last path that the peer may use, if it may use several.
    pub(crate) fn last_allowed(&self) -> Option<PathId> {
        self.extension
            .as_ref()
            .map(|extension| extension.last_allowed())
    }

    /// Paths that are not open and not forgotten.
    pub(crate) fn unopened(&self) -> usize {
        self.extension
            .as_ref()
            .map_or(0, |extension| extension.len())
    }

    /// The paths that are coordinated together.
    pub(crate) fn bundled(&self) -> Vec<Vec<PathId>> {
        self.bundles
            .as_ref()
            .map_or_else(Vec::new, |bundles| bundles.members())
    }
}

/// What the recovery of a path depends on, beside the configuration.
struct PathStart {
    first_window: FirstWindow,
    /// In bytes.
    datagram_size: u16,
    initial_rtt: Duration,
    seed: u64,
}

fn recovery_config(
    config: &TransportConfig,
    controllers: &dyn ControllerFactory,
    start: PathStart,
) -> RecoveryConfig {
    let controller = ControllerConfig {
        initial_window: start.first_window.bytes,
        max_datagram_size: start.datagram_size.into(),
        slow_start_exit: (config.slow_start_exit)(),
        backoff: config.backoff,
        seed: start.seed,
    };
    RecoveryConfig {
        initial_rtt: start.initial_rtt,
        controller: controllers.build(controller),
        detector: (config.loss_detector)(),
        pacer: config
            .pacing
            .then(|| Pacer::new(start.datagram_size.into())),
        first_window: start.first_window,
    }
}

/// A validation waits for the larger of the current probe timeout and that of a path without a sample (RFC
/// 9000, section 8.2.4).
fn validation(now: Instant, pto: Duration, config: &TransportConfig) -> Validation {
    Validation::new(now, pto.max(config.initial_rtt * 3))
}
