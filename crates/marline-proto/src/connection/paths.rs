//! Several paths in one connection (draft-ietf-quic-multipath-21): the calls of the application, the frames of the
//! peer, and what opening and abandoning a path changes in the rest of the connection. The rules are in
//! [`crate::paths::PathSet`].

use marline_wire::frame::{PathAbandon, PathAck, PathRetireConnectionId, RetireConnectionId};
use marline_wire::{ConnectionId, ErrorCode, PathId, TransportError};

use super::Connection;
use super::events::{EndpointEvent, Event};
use super::receive::ReceivedPacket;
use crate::congestion::ConnectionKind;
use crate::coordination::bundle::MemberDirective;
use crate::coordination::history::PathSample;
use crate::level::SpaceId;
use crate::paths::{
    AbandonPathError, AmplificationLimit, Finding, NewPath, OpenPathError, Openable, Slot,
    StatusFrame, Tuple,
};
use crate::recovery::{InitialWindowChoice, Outcome};
use crate::scheduling::path::PathStatus;
use crate::sending::Content;
use crate::time::Instant;
use crate::tuple::{Arrival, FourTuple};

/// Probe timeouts after which the state of an abandoned path is removed (section 3.4).
const RETENTION_PTOS: u32 = 3;

impl Connection {
    /// Whether both ends support several paths; known once the handshake is complete.
    pub fn is_multipath(&self) -> bool {
        self.paths.is_multipath()
    }

    /// Checks the peer's initial_max_path_id (section 2.1).
    pub(super) fn check_multipath(&self, theirs: Option<u32>) -> Result<(), TransportError> {
        let has_empty_id = self
            .establishment
            .progress()
            .peer_cid()
            .is_none_or(|id| id.is_empty());
        if theirs.is_some() && self.supports_multipath() && has_empty_id {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "several paths with a connection ID of no bytes",
            ));
        }
        Ok(())
    }

    fn supports_multipath(&self) -> bool {
        self.config.multipath.is_some() && !self.establishment.progress().local_cid().is_empty()
    }

    /// The handshake is complete: several paths are negotiated if both ends support them.
    pub(super) fn begin_multipath(&mut self) {
        if !self.supports_multipath() {
            return;
        }
        if let (Some(config), Some(theirs)) = (
            &self.config.multipath,
            self.establishment.peer().initial_max_path_id,
        ) {
            self.paths
                .begin_multipath(config, PathId(theirs), self.side);
            self.sending.begin_multipath(config);
        }
    }

    /// Client: opens a path between these addresses; returns its ID.
    ///
    /// It carries data once it is validated, which [`Event::PathValidated`] reports. Several paths may have the same
    /// addresses.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be opened now.
    pub fn open_path(&mut self, now: Instant, tuple: FourTuple) -> Result<PathId, OpenPathError> {
        let at = self.begin_path(now, tuple)?;
        let id = self.paths[at].id;
        self.after_input(now);
        Ok(id)
    }

    /// Client: opens the additional paths that the settings ask for, once path IDs and connection IDs are available.
    /// A path that cannot be opened is not tried again.
    pub(super) fn open_siblings(&mut self, now: Instant) {
        while self.establishment.progress().is_confirmed() && self.paths.take_due_sibling() {
            let addresses = self.paths.main().tuples.active.addresses;
            // No caller waits for it.
            let _ = self.begin_path(now, addresses);
        }
    }

    fn begin_path(&mut self, now: Instant, tuple: FourTuple) -> Result<Slot, OpenPathError> {
        if !self.lifecycle.is_open() {
            return Err(OpenPathError::Closed);
        }
        if self.side.is_server() {
            return Err(OpenPathError::NotClient);
        }
        let to_handshake = tuple.remote == self.establishment.progress().remote();
        let is_confirmed = self.establishment.progress().is_confirmed();
        let is_forbidden = self.establishment.peer().disable_active_migration && to_handshake;
        let openable = self.paths.take_next(is_confirmed, is_forbidden)?;
        let Some(local) = openable.first_local_cid() else {
            return Err(OpenPathError::NoConnectionIds);
        };
        let at = self.add_path(now, openable, local, tuple);
        // A client's own path has no amplification limit.
        self.paths[at].tuples.active.amplification = AmplificationLimit::validated();
        Ok(at)
    }

    /// Server: whether clients may open paths.
    pub(super) fn accepts_paths(&self) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|server| server.config.migration)
    }

    /// Server: adds the path that the client has opened with an authentic packet to `destination`.
    pub(super) fn accept_path(
        &mut self,
        now: Instant,
        id: PathId,
        destination: ConnectionId,
        arrival: &Arrival,
    ) -> Option<Slot> {
        let openable = self.paths.take_for_client(id)?;
        let at = self.add_path(now, openable, destination, arrival.tuple);
        let path = &mut self.paths[at];
        let limit = &mut path.tuples.active.amplification;
        limit.on_received(arrival.datagram as u64);
        path.counters.received.count(arrival.datagram);
        Some(at)
    }

    fn add_path(
        &mut self,
        now: Instant,
        openable: Openable,
        active_local: ConnectionId,
        addresses: FourTuple,
    ) -> Slot {
        let new = NewPath {
            openable,
            active_local,
            addresses,
            config: &self.config,
            initial_window: self.initial_window_of_path(now, addresses),
            active_connection_id_limit: self.establishment.peer().active_connection_id_limit,
            max_udp_payload_size: self.establishment.peer().max_udp_payload_size,
            max_ack_delay: self.establishment.peer().max_ack_delay,
            ack_request: self.ack_request.requested(),
        };
        let added = self.paths.add(now, new, &mut self.rng);
        let at = added.at;
        let id = self.paths[at].id;
        self.events.application.push_back(Event::PathOpened(id));
        self.telemetry.report_path(now, &self.paths[at]);
        self.telemetry
            .report_recovery_parameters(now, &self.paths[at]);
        self.report_initial_window(now, at);
        if added.is_proven {
            self.on_path_valid(now, at);
        }
        at
    }

    /// The initial window of a path other than that of the handshake.
    pub(super) fn initial_window_of_path(
        &self,
        now: Instant,
        addresses: FourTuple,
    ) -> InitialWindowChoice {
        let kind = ConnectionKind {
            peer: addresses.remote,
            ..self.kind(now, true)
        };
        let policy = &self.config.initial_window;
        InitialWindowChoice {
            bytes: policy.window(&kind),
            default: policy.window_before_handshake(&kind),
        }
    }

    /// A path is validated: it may carry data.
    pub(super) fn on_path_valid(&mut self, now: Instant, at: Slot) {
        if self.paths.on_valid(at) {
            let id = self.paths[at].id;
            self.events.application.push_back(Event::PathValidated(id));
            self.relieve_suspected_paths(now, at);
            self.join_path_bundle(now, at);
        }
    }

    /// Reports that a path can be opened, if the application has tried to before.
    pub(super) fn report_paths_available(&mut self) {
        if self.establishment.progress().is_confirmed() && self.paths.take_wanted_path() {
            self.events.application.push_back(Event::PathsAvailable);
        }
    }

    /// Abandons a path. What is in flight there is sent on other paths; the peer receives `error`, such as
    /// [`ErrorCode::APPLICATION_ABANDON_PATH`].
    ///
    /// # Errors
    ///
    /// If there is no such path, or if it is the only one.
    pub fn abandon_path(
        &mut self,
        now: Instant,
        id: PathId,
        error: ErrorCode,
    ) -> Result<(), AbandonPathError> {
        let at = self.paths.find_abandonable(id)?;
        self.end_path(now, at, error, None);
        self.after_input(now);
        Ok(())
    }

    pub(super) fn on_path_abandon(
        &mut self,
        now: Instant,
        frame: &PathAbandon,
    ) -> Result<(), TransportError> {
        let until = now + self.pto() * RETENTION_PTOS;
        if let Some(at) = self.paths.on_path_abandon(frame, until)? {
            self.end_path(now, at, frame.error_code, Some(until));
        }
        Ok(())
    }

    /// Stops sending on a path and announces that with PATH_ABANDON. If the peer has abandoned it already, its state
    /// is removed at `until`.
    pub(super) fn end_path(
        &mut self,
        now: Instant,
        at: Slot,
        error: ErrorCode,
        until: Option<Instant>,
    ) {
        if at == self.paths.main_slot() {
            self.abandon_careful_resume(now);
            self.report_final_sample(now);
        }
        self.requeue_path_data(at);
        self.paths.abandon(at, error, until);
        let id = self.paths[at].id;
        self.events
            .application
            .push_back(Event::PathClosed { id, error });
        self.telemetry.report_path_removed(now, id);
    }

    /// Makes what a path has in flight and in its queue due on the other paths.
    fn requeue_path_data(&mut self, at: Slot) {
        self.requeue_in_flight(at, SpaceId::Data);
        self.requeue_assigned(at);
        for datagram in self.paths[at].datagrams.drain() {
            self.datagrams.reroute_waiting(datagram);
        }
    }

    /// Returns the queue of a path to the streams, to be assigned anew.
    pub(super) fn requeue_assigned(&mut self, at: Slot) {
        for segment in self.paths[at].queue.drain() {
            self.streams.return_segment(&segment);
        }
    }

    /// Sets the time at which abandoned paths are removed whose PATH_ABANDON the peer has acknowledged but not answered.
    pub(super) fn settle_abandoned(&mut self, now: Instant) {
        let max_ack_delay = self.establishment.peer().max_ack_delay;
        self.paths
            .settle_abandoned(|paths| now + paths.longest_pto(max_ack_delay) * RETENTION_PTOS);
    }

    /// Removes the state of paths that were abandoned long enough ago, and issues connection IDs for others.
    pub(super) fn forget_paths(&mut self, now: Instant) {
        for forgotten in self.paths.forget(now) {
            let retired = forgotten.local.iter().map(EndpointEvent::Retired);
            self.events.endpoint.extend(retired);
            if let Some(keys) = self.establishment.one_rtt_mut() {
                keys.forget_path(forgotten.id);
            }
        }
        self.issue_connection_ids();
    }

    pub(super) fn on_path_ack(
        &mut self,
        now: Instant,
        frame: &PathAck<'_>,
        packet: &ReceivedPacket,
    ) -> Result<(), TransportError> {
        self.paths.check(frame.path_id, frame.frame_type())?;
        match self.paths.by_id(frame.path_id) {
            Some(at) => self.on_ack(now, at, SpaceId::Data, &frame.ack, packet),
            None => Ok(()),
        }
    }

    /// Sets the status of a path, and announces it to the peer: a backup path carries data only while all others are
    /// suspected. Does nothing if there is no such path.
    pub fn set_path_status(&mut self, id: PathId, status: PathStatus) {
        self.paths.set_status(id, status);
    }

    pub(super) fn on_path_status(&mut self, frame: &StatusFrame) -> Result<(), TransportError> {
        if self.paths.on_status(frame)? {
            self.events.application.push_back(Event::PathStatus {
                id: frame.path,
                status: frame.status,
            });
        }
        Ok(())
    }

    /// Replaces all connection IDs that the peer has by new ones (RFC 9000, section 5.1.2): those of a connection whose
    /// handshake is not complete, or that has an earlier request under way, once that is.
    pub fn renew_connection_ids(&mut self) {
        self.paths.replace_ids();
        self.issue_connection_ids();
    }

    /// Issues connection IDs up to the peer's limits.
    pub(super) fn issue_connection_ids(&mut self) {
        if self.establishment.one_rtt().is_none() || !self.paths.is_issue_due() {
            return;
        }
        let issued = self.paths.issue_ids(&self.endpoint, &mut self.rng);
        let issued = issued.into_iter().map(EndpointEvent::Issued);
        self.events.endpoint.extend(issued);
    }

    pub(super) fn on_path_retire_connection_id(
        &mut self,
        frame: &PathRetireConnectionId,
        packet: &ReceivedPacket,
    ) -> Result<(), TransportError> {
        let retired = self
            .paths
            .on_path_retire_connection_id(frame, &packet.dcid)?;
        self.events
            .endpoint
            .extend(retired.map(EndpointEvent::Retired));
        Ok(())
    }

    pub(super) fn on_retire_connection_id(
        &mut self,
        path: PathId,
        frame: &RetireConnectionId,
        packet: &ReceivedPacket,
    ) -> Result<(), TransportError> {
        let retired = self
            .paths
            .on_retire_connection_id(path, frame, &packet.dcid)?;
        self.events
            .endpoint
            .extend(retired.map(EndpointEvent::Retired));
        Ok(())
    }

    /// Packets of a path were newly acknowledged.
    pub(super) fn on_path_answer(&mut self, now: Instant, at: Slot, outcome: &Outcome) {
        if self.paths.on_answer(at, outcome) {
            self.relieve_suspected_paths(now, at);
        }
    }

    /// Path `by` works: makes due again what suspected paths have in flight.
    fn relieve_suspected_paths(&mut self, now: Instant, by: Slot) {
        for at in self.paths.relieved_by(now, by) {
            self.requeue_path_data(at);
        }
    }

    /// Applies the findings of path failure detection at `now`.
    pub(super) fn on_path_findings(&mut self, now: Instant) {
        let max_ack_delay = self.establishment.peer().max_ack_delay;
        for at in self.paths.slots() {
            match self.paths.find(now, at, max_ack_delay) {
                Some(Finding::GivenUp) => {
                    self.end_path(now, at, ErrorCode::PATH_UNSTABLE_OR_POOR, None);
                }
                Some(Finding::Suspect) => self.reroute_outstanding(at),
                Some(Finding::Unclear | Finding::Idle) | None => {}
            }
        }
    }

    /// Makes due on the other paths what a suspected path has in flight. Its probes carry copies of the first of that:
    /// if only a packet was lost, a short path delivers them sooner than a long one.
    pub(super) fn reroute_outstanding(&mut self, at: Slot) {
        self.requeue_path_data(at);
        // It is sent before what is queued on the others.
        for path in self.paths.slots() {
            self.requeue_assigned(path);
        }
        self.sending.refresh(&mut self.streams);
        let other = self.paths.best();
        if other == at {
            return;
        }
        let mut content = Content {
            streams: &mut self.streams,
            paths: &mut self.paths,
        };
        self.sending.copy_onto_probes(at, other, &mut content);
    }

    /// A path has moved to other addresses: leaves its bundle of paths and joins another.
    pub(super) fn change_path_bundle(&mut self, now: Instant, at: Slot) {
        self.paths.leave_bundle(at);
        self.join_path_bundle(now, at);
    }

    /// Adds a validated path to the bundle of the paths between the same hosts, if this end coordinates them.
    fn join_path_bundle(&mut self, now: Instant, at: Slot) {
        let Some(joining) = self.paths.join_bundle(at) else {
            return;
        };
        for &member in &joining.members {
            let directives = self.paths.admit(&joining, member);
            self.report_directives(now, &directives);
        }
    }

    /// Passes the signals of a path's recovery to the engine of its bundle of paths.
    pub(super) fn report_to_path_bundle(&mut self, now: Instant, at: Slot) {
        while let Some(directives) = self.paths.report_to_bundle(now, at) {
            self.report_directives(now, &directives);
        }
    }

    /// Adds the windows and deliveries of the paths that are coordinated with the main one: they share a bottleneck,
    /// whose capacity is the sum.
    pub(super) fn add_bundled_paths(&self, sample: &mut PathSample) {
        if !self.paths.is_coordinating() {
            return;
        }
        for at in self.paths.beside(self.paths.main_slot()) {
            let other = self.paths[at].sample(sample.event);
            sample.window += other.window;
            sample.delivered += other.delivered;
            sample.app_limited &= other.app_limited;
            sample.lost_at_first |= other.lost_at_first;
        }
    }

    fn report_directives(&mut self, now: Instant, directives: &[MemberDirective<PathId>]) {
        for MemberDirective { member, directive } in directives {
            if let Some(at) = self.paths.by_id(*member) {
                self.report_directive(now, at, directive);
            }
        }
    }

    pub(super) fn new_tuple(&mut self, addresses: FourTuple) -> Tuple {
        self.paths.new_tuple(&self.config, addresses)
    }
}

#[cfg(test)]
impl Connection {
    /// The datagram size of each path, in bytes.
    pub(super) fn datagram_sizes(&self) -> Vec<u16> {
        let size = |path: &crate::paths::Path| path.tuples.active.mtu.current();
        self.paths.iter().map(size).collect()
    }
}
