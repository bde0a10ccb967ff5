//! Changes of address: NAT rebinding, migration, preferred address (RFC 9000, sections 8.2 and 9). The rules are in
//! [`crate::paths`]; this module applies a change to the rest of the connection.

use std::net::SocketAddr;

use marline_wire::frame::{PathChallenge, PathResponse};
use marline_wire::{ErrorCode, TransportError};

use super::Connection;
use super::events::{EndpointEvent, Event};
use super::packet::DatagramContext;
use super::receive::ReceivedPacket;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::observe::events::MigrationState;
use crate::paths::{
    AmplificationLimit, MigrationRules, Proven, RemoteCid, Slot, TokenChange, Tuple, Validation,
    ValidationFailure,
};
use crate::time::Instant;
use crate::tuple::{FourTuple, Transmit};

impl Connection {
    /// Whether datagrams on a new `tuple` are processed: a client accepts them from known server addresses only, a
    /// server only once the handshake is confirmed (RFC 9000, section 9).
    pub(super) fn may_come_from(&mut self, tuple: &FourTuple) -> bool {
        match self.side.is_client() {
            true => self.paths.knows_remote(tuple.remote),
            false => self.is_confirmed(),
        }
    }

    fn validation(&self, now: Instant, at: Slot) -> Validation {
        let max_ack_delay = self.establishment.peer().max_ack_delay;
        self.paths
            .new_validation(now, at, max_ack_delay, &self.config)
    }

    pub(super) fn on_path_challenge(
        &mut self,
        frame: &PathChallenge,
        packet: &ReceivedPacket,
    ) -> Result<(), TransportError> {
        let addresses = packet.arrival.tuple;
        let at = packet.path;
        if self.paths[at].is_abandoned() {
            return Ok(());
        }
        if let Some(known) = self.paths[at].tuples.find(&addresses) {
            known.responses.on_challenge(frame);
            return Ok(());
        }
        let mut tuple = self.new_tuple(addresses);
        tuple
            .amplification
            .on_received(packet.arrival.datagram as u64);
        tuple.cid = self.paths[at].remote_cids.next_unused();
        tuple.responses.on_challenge(frame);
        self.paths[at].set_probed(tuple);
        Ok(())
    }

    pub(super) fn on_path_response(
        &mut self,
        now: Instant,
        frame: &PathResponse,
    ) -> Result<(), TransportError> {
        for at in self.paths.slots() {
            match self.paths[at].on_response(now, frame) {
                Some(Proven::Opening) => self.on_path_valid(now, at),
                Some(Proven::Active) => {
                    self.telemetry.report_migration(
                        now,
                        &self.paths[at],
                        MigrationState::MigrationComplete,
                    );
                    self.resume_after_outage(at);
                }
                Some(Proven::Probed) => {
                    self.telemetry.report_migration(
                        now,
                        &self.paths[at],
                        MigrationState::ProbingSuccessful,
                    );
                    self.move_to_probed(now, at);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// After a non-probing packet: if it came from a new address and has the largest number of its path, the peer has
    /// migrated (RFC 9000, section 9.3).
    pub(super) fn follow_peer(&mut self, now: Instant, packet: &ReceivedPacket, is_newest: bool) {
        let addresses = packet.arrival.tuple;
        let at = packet.path;
        let server = self.server.as_ref();
        let rules = MigrationRules {
            follows: self.side.is_server() && self.is_confirmed(),
            allows_migration: server.is_none_or(|server| server.config.migration),
            preferred: server.and_then(|server| server.config.preferred_address),
        };
        let Some(peer_move) = self.paths[at].peer_move(&addresses, is_newest, &rules) else {
            return;
        };
        let mut tuple = match self.paths[at].take_known(&addresses) {
            Some(known) => known,
            None => {
                let mut tuple = self.new_tuple(addresses);
                tuple
                    .amplification
                    .on_received(packet.arrival.datagram as u64);
                tuple
            }
        };
        if !tuple.amplification.is_validated() {
            tuple.validation = Some(self.validation(now, at));
        }
        // After a NAT rebinding the peer uses the same connection ID and expects ours to stay the same.
        if tuple.cid.is_none() && packet.dcid != self.paths[at].active_local_cid {
            tuple.cid = self.paths[at].remote_cids.next_unused();
        }
        self.paths[at].active_local_cid = packet.dcid;
        self.move_to(now, at, tuple, !peer_move.is_rebinding);
        self.validate_previous(now, at);
    }

    /// Validates the 4-tuple that the peer has left: an attacker may have forwarded its packets (RFC 9000, section
    /// 9.3.3).
    fn validate_previous(&mut self, now: Instant, at: Slot) {
        let validation = self.validation(now, at);
        if let Some(previous) = &mut self.paths[at].tuples.previous {
            previous.validation = Some(validation);
        }
    }

    /// Called when the active 4-tuple is validated. If probe timeouts expired meanwhile, the backed-off next
    /// one would come late.
    fn resume_after_outage(&mut self, at: Slot) {
        let path = &mut self.paths[at];
        if path.recovery.pto_count() > 0 {
            path.recovery.reset_pto_count();
            path.ping_due = true;
        }
    }

    /// Makes `tuple` the active one of a path. If it leads to another host (`reset`), recovery and congestion
    /// control are reset (RFC 9000, section 9.4).
    fn move_to(&mut self, now: Instant, at: Slot, tuple: Tuple, reset: bool) {
        let is_main = at == self.paths.main_slot();
        if reset && is_main {
            self.abandon_careful_resume(now);
            self.report_final_sample(now);
        }
        self.requeue_assigned(at);
        let former = self.paths[at].move_to(tuple);
        if reset {
            self.restart_recovery(now, at, is_main);
        } else {
            let path = &mut self.paths[at];
            path.recovery.on_mtu(path.tuples.active.mtu.current());
            path.recovery.on_rebinding(former);
        }
        self.events.application.push_back(Event::PathChanged);
        self.telemetry
            .report_migration(now, &self.paths[at], MigrationState::MigrationStarted);
        self.telemetry.report_path(now, &self.paths[at]);
    }

    /// Resets recovery and congestion control of a path that leads to another host.
    fn restart_recovery(&mut self, now: Instant, at: Slot, is_main: bool) {
        let first = if is_main {
            self.paths.set_moved();
            self.initial_window_after_move(now)
        } else {
            self.initial_window_of_path(now, self.paths[at].tuples.active.addresses)
        };
        let recovery = self
            .paths
            .fresh_recovery(&self.config, at, first, &mut self.rng);
        self.paths[at].reset_recovery(recovery);
        self.telemetry
            .report_recovery_parameters(now, &self.paths[at]);
        self.report_initial_window(now, at);
        if is_main {
            self.begin_careful_resume(now, true);
            self.join_bundle(now, true);
        }
        self.change_path_bundle(now, at);
    }

    /// Client: the socket's local address changed. The paths that share the main one's port migrate with it, including
    /// those being opened. Paths from other addresses keep them if the socket is bound to none.
    ///
    /// Sending continues immediately, with another connection ID if the server has issued one, while the server
    /// validates the address.
    pub fn rebind(&mut self, now: Instant, local: SocketAddr) {
        // One socket may serve paths at several addresses, but has one port.
        let port = self.local_address().port();
        self.rebind_paths(now, local, |former| former.port() == port);
    }

    /// Client: no socket sends from the local address `former` any more. Its paths migrate to the socket at `local`;
    /// they may have returned because their validation failed.
    pub fn leave_address(&mut self, now: Instant, former: SocketAddr, local: SocketAddr) {
        self.rebind_paths(now, local, |address| address == former);
    }

    /// Moves the paths whose local address satisfies `moves` to the socket at `local`.
    fn rebind_paths(
        &mut self,
        now: Instant,
        local: SocketAddr,
        moves: impl Fn(SocketAddr) -> bool,
    ) {
        if self.side.is_server() || !self.lifecycle.is_open() {
            return;
        }
        let main = self.paths.main_slot();
        let former = self.local_address().ip();
        let slots: Vec<Slot> = self.paths.at_local(moves).collect();
        for at in slots {
            let active = self.paths[at].tuples.active.addresses;
            let keeps_ip = local.ip().is_unspecified()
                && !active.local.ip().is_unspecified()
                && active.local.ip() != former;
            let mut next = FourTuple { local, ..active };
            if keeps_ip {
                next.local = active.local;
                next.local.set_port(local.port());
            }
            let probed = self.paths[at].tuples.probed.as_deref();
            if probed.is_some_and(|probed| probed.addresses == next) {
                self.move_to_probed(now, at);
            } else if next != active || at == main {
                self.rebind_path(now, at, next);
            }
        }
        self.after_input(now);
    }

    fn rebind_path(&mut self, now: Instant, at: Slot, addresses: FourTuple) {
        let local = addresses.local;
        if !self.is_confirmed() || self.establishment.peer().disable_active_migration {
            let tuples = &mut self.paths[at].tuples;
            tuples.active.addresses = addresses;
            if let Some(probed) = &mut tuples.probed {
                probed.addresses.local = local;
            }
        } else {
            let cid = self.paths[at].remote_cids.next_unused();
            let tuple = self.client_tuple(now, at, addresses, cid);
            if self.paths[at].is_open() {
                self.move_to(now, at, tuple, true);
            } else {
                // The path carries nothing yet, so it is moved without validation.
                self.paths[at].move_to(tuple);
                self.telemetry.report_path(now, &self.paths[at]);
            }
            self.probe_from(now, at, local);
        }
        self.paths[at].ping_due = true;
    }

    /// Client: a new 4-tuple of a path, whose validation begins. It has no amplification limit.
    pub(super) fn client_tuple(
        &mut self,
        now: Instant,
        at: Slot,
        addresses: FourTuple,
        cid: Option<RemoteCid>,
    ) -> Tuple {
        let mut tuple = self.new_tuple(addresses);
        tuple.amplification = AmplificationLimit::validated();
        tuple.validation = Some(self.validation(now, at));
        tuple.cid = cid;
        tuple
    }

    /// Client: probes the server's preferred address anew from `local`, with a connection ID that was not used
    /// from the former address (RFC 9000, section 9.5); stops probing if there is none.
    fn probe_from(&mut self, now: Instant, at: Slot, local: SocketAddr) {
        let path = &mut self.paths[at];
        let is_validating = |tuple: &Tuple| tuple.validation.is_some();
        let probed = path.tuples.probed.as_deref();
        let Some(addresses) = probed
            .filter(|tuple| is_validating(tuple))
            .map(|tuple| tuple.addresses)
        else {
            return;
        };
        let cid = path.remote_cids.next_unused();
        path.stop_probing();
        if cid.is_some() {
            let addresses = FourTuple { local, ..addresses };
            let tuple = self.client_tuple(now, at, addresses, cid);
            self.paths[at].set_probed(tuple);
        }
    }

    /// Client: validates the server's preferred address to migrate to it (RFC 9000, section 9.6).
    pub(super) fn try_preferred_address(&mut self, now: Instant) {
        let Some(preferred) = self.establishment.take_preferred_address() else {
            return;
        };
        let at = Slot::FIRST;
        let active = self.paths[at].tuples.active.addresses;
        let remote = match active.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.ipv6.map(SocketAddr::V6),
        };
        let Some(remote) = remote else { return };
        let Some(cid) = self.paths[at].remote_cids.next_unused() else {
            return;
        };
        let addresses = FourTuple {
            local: active.local,
            remote,
        };
        let tuple = self.client_tuple(now, at, addresses, Some(cid));
        self.paths[at].set_probed(tuple);
        self.telemetry
            .report_migration(now, &self.paths[at], MigrationState::ProbingStarted);
    }

    /// Migrates a client to the address that it has probed, a server to the last one of a client that did not
    /// answer there before.
    fn move_to_probed(&mut self, now: Instant, at: Slot) {
        let Some(tuple) = self.paths[at].tuples.probed.take() else {
            return;
        };
        let host = self.paths[at].tuples.active.addresses.remote.ip();
        let is_rebinding = self.side.is_server() && tuple.addresses.remote.ip() == host;
        self.move_to(now, at, *tuple, !is_rebinding);
        if self.side.is_server() {
            self.validate_previous(now, at);
            self.paths[at].recovery.reset_pto_count();
        }
        self.paths[at].ping_due = true;
    }

    /// Passes changes of the peer's stateless reset tokens to the endpoint.
    pub(super) fn report_reset_tokens(&mut self) {
        while let Some(change) = self.paths.poll_token_change() {
            self.events.endpoint.push_back(match change {
                TokenChange::Add(token) => EndpointEvent::ResetTokenAdded(token),
                TokenChange::Remove(token) => EndpointEvent::ResetTokenRemoved(token),
            });
        }
    }

    /// Handles path validations that timed out.
    pub(super) fn on_validation_timeout(&mut self, now: Instant, at: Slot) {
        let keeps_trying = self.side.is_server();
        let Some(failure) = self.paths[at].expire_validations(now, keeps_trying) else {
            return;
        };
        let is_main = at == self.paths.main_slot();
        if is_main && failure != ValidationFailure::NeverOpened {
            self.abandon_careful_resume(now);
        }
        match failure {
            ValidationFailure::NeverOpened => {
                self.end_path(now, at, ErrorCode::PATH_UNSTABLE_OR_POOR, None);
            }
            ValidationFailure::Returned { to_other_host } => {
                if to_other_host {
                    if is_main {
                        self.restore_initial_window(now);
                        self.join_bundle(now, true);
                    }
                    self.change_path_bundle(now, at);
                }
                self.events.application.push_back(Event::PathChanged);
                self.telemetry.report_migration(
                    now,
                    &self.paths[at],
                    MigrationState::MigrationAbandoned,
                );
                self.telemetry.report_path(now, &self.paths[at]);
            }
            ValidationFailure::Stranded if self.paths.has_other_open(at) => {
                self.end_path(now, at, ErrorCode::PATH_UNSTABLE_OR_POOR, None);
            }
            ValidationFailure::Stranded if self.side.is_server() => self.fail(
                now,
                TransportError::new(ErrorCode::NO_VIABLE_PATH, "the peer's address is not valid"),
            ),
            ValidationFailure::Stranded => {}
        }
    }

    /// A datagram with PATH_CHALLENGE or PATH_RESPONSE, for any 4-tuple of the path.
    pub(super) fn transmit_path_probe(
        &mut self,
        now: Instant,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.establishment.one_rtt()?;
        let mut slots = self.paths.slots();
        slots.find_map(|at| self.transmit_probe_of(now, at, buf))
    }

    fn transmit_probe_of(&mut self, now: Instant, at: Slot, buf: &mut Vec<u8>) -> Option<Transmit> {
        let probe = self.paths[at].due_probe(now)?;
        let credit = usize::try_from(probe.credit).unwrap_or(usize::MAX);
        let full = usize::from(MIN_DATAGRAM_SIZE);
        let datagram = DatagramContext {
            path: at,
            end: buf.len() + full.min(credit),
            ecn: None,
            tuple: probe.generation,
            dcid: probe.destination,
        };
        let transmit = self.transmit_alone(
            now,
            probe.addresses,
            datagram,
            if credit < full { 0 } else { full },
            buf,
            |this, packet, buf| {
                let rng = this.rng.secure();
                let tuple = this.paths[at].tuples.by_generation(probe.generation);
                let Some(tuple) = tuple else {
                    return false;
                };
                // PATH_RESPONSE or PATH_CHALLENGE that lifts the amplification limit comes first:
                // there may be no room for more.
                let validation = tuple.validation.as_mut();
                let challenges = validation.is_some_and(|validation| {
                    validation.write_frames(now, rng, &probe.pace, buf, packet.limit)
                });
                let written = tuple.responses.write_frames(buf, packet.limit) || challenges;
                packet.ack_eliciting = written;
                written
            },
        );
        let transmit = transmit.ok().flatten()?;
        let tuple = self.paths[at].tuples.by_generation(probe.generation);
        if let Some(tuple) = tuple {
            tuple.amplification.on_sent(transmit.size as u64);
            if let Some(validation) = &mut tuple.validation {
                validation.on_sent(transmit.size);
            }
        }
        Some(transmit)
    }
}
