//! Addresses change: NAT rebinding, migration, preferred address (RFC 9000, sections 8.2 and 9).

use std::net::SocketAddr;

use marline_wire::frame::{PathChallenge, PathResponse};
use marline_wire::{ConnectionId, ErrorCode, TransportError};

use super::Connection;
use super::events::{EndpointEvent, Event};
use super::packet::{Envelope, MIN_ROOM};
use super::path::Stage;
use super::receive::Opened;
use super::slots::Slot;
use crate::config::TransportConfig;
use crate::limits::{CHALLENGE_CREDIT, MIN_DATAGRAM_SIZE};
use crate::observe::events::MigrationState;
use crate::paths::{
    AmplificationLimit, EcnValidation, MtuDiscovery, Proof, Responses, TokenChange, Tuple, Tuples,
    Validation,
};
use crate::time::Instant;
use crate::tuple::{FourTuple, Transmit};

impl Tuple {
    /// A 4-tuple about which nothing is known.
    pub(super) fn new(config: &TransportConfig, generation: u32, addresses: FourTuple) -> Self {
        let ceiling = if config.mtu.discover {
            config.mtu.ceiling
        } else {
            MIN_DATAGRAM_SIZE
        };
        Self {
            generation,
            addresses,
            cid: None,
            amplification: AmplificationLimit::new(),
            validation: None,
            responses: Responses::default(),
            mtu: MtuDiscovery::new(ceiling),
            ecn: EcnValidation::new(config.ecn),
        }
    }

    /// What data may take of the amplification limit, in bytes. Some is kept for challenges: only an answer
    /// ends the limit.
    pub(super) fn credit_for_data(&self) -> u64 {
        let credit = self.amplification.credit();
        let is_limited = self.validation.is_some() && !self.amplification.is_validated();
        credit.saturating_sub(if is_limited { CHALLENGE_CREDIT } else { 0 })
    }

    /// Whether that leaves room for a packet.
    pub(super) fn may_send_data(&self) -> bool {
        self.credit_for_data() >= MIN_ROOM as u64
    }

    /// Whether the amplification limit leaves room for a packet.
    pub(super) fn may_send(&self) -> bool {
        self.amplification.credit() >= MIN_ROOM as u64
    }

    fn is_challenge_due(&self, now: Instant) -> bool {
        self.validation
            .as_ref()
            .is_some_and(|validation| validation.is_due(now))
    }

    /// When its validation has something to do that the amplification limit permits.
    fn next_validation_timeout(&self) -> Option<Instant> {
        let validation = self.validation.as_ref()?;
        Some(match self.may_send() {
            true => validation.next_timeout(),
            false => validation.deadline(),
        })
    }
}

impl Tuples {
    pub(super) fn next_validation_timeout(&self) -> Option<Instant> {
        let inactive = self.previous.iter().chain(&self.probed);
        std::iter::once(&self.active)
            .chain(inactive.map(|tuple| &**tuple))
            .filter_map(Tuple::next_validation_timeout)
            .min()
    }
}

impl Connection {
    /// Whether datagrams on a new `tuple` are looked at: a client talks to servers it knows only, a server
    /// to no second address before the handshake is confirmed (RFC 9000, section 9).
    pub(super) fn may_come_from(&mut self, tuple: &FourTuple) -> bool {
        let mut tuples = self.paths.iter_mut().flat_map(|path| path.tuples.all());
        let remote_known = tuples.any(|known| known.addresses.remote == tuple.remote);
        match self.side.is_client() {
            true => remote_known,
            false => self.progress.is_confirmed(),
        }
    }

    pub(super) fn new_tuple(&mut self, addresses: FourTuple) -> Tuple {
        self.tuple_generation += 1;
        Tuple::new(&self.config, self.tuple_generation, addresses)
    }

    pub(super) fn validation(&self, now: Instant, at: Slot) -> Validation {
        let pto = self.paths[at].recovery.pto(self.peer.max_ack_delay);
        Validation::new(now, pto.max(self.config.initial_rtt * 3))
    }

    pub(super) fn on_path_challenge(
        &mut self,
        frame: &PathChallenge,
        packet: &Opened,
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
        self.replace_probed(at, tuple);
        Ok(())
    }

    fn replace_probed(&mut self, at: Slot, tuple: Tuple) {
        let path = &mut self.paths[at];
        if let Some(old) = path.tuples.probed.replace(Box::new(tuple))
            && let Some((sequence, _)) = old.cid
        {
            path.remote_cids.retire(sequence);
        }
    }

    pub(super) fn on_path_response(
        &mut self,
        now: Instant,
        frame: &PathResponse,
    ) -> Result<(), TransportError> {
        for at in self.paths.slots() {
            if let Some(generation) = self.prove(now, at, frame) {
                self.on_proven(now, at, generation);
            }
        }
        Ok(())
    }

    /// The 4-tuple of a path that the response proves to work, if there is one.
    fn prove(&mut self, now: Instant, at: Slot, frame: &PathResponse) -> Option<u32> {
        let mut proven = None;
        for tuple in self.paths[at].tuples.all() {
            let Some(validation) = &mut tuple.validation else {
                continue;
            };
            let Some(proof) = validation.on_response(now, frame) else {
                continue;
            };
            tuple.amplification.on_validated();
            if proof == Proof::Path {
                tuple.validation = None;
                proven = Some(tuple.generation);
            }
        }
        proven
    }

    fn on_proven(&mut self, now: Instant, at: Slot, generation: u32) {
        let path = &mut self.paths[at];
        if path.tuples.active.generation == generation {
            // Nobody needs the way back any more.
            let previous = path.tuples.previous.take();
            if let Some((sequence, _)) = previous.and_then(|previous| previous.cid) {
                path.remote_cids.retire(sequence);
            }
            if path.stage == Stage::Opening {
                self.on_path_valid(now, at);
            } else {
                self.tell_migration(now, at, MigrationState::MigrationComplete);
            }
        } else if path
            .tuples
            .probed
            .as_ref()
            .is_some_and(|probed| probed.generation == generation)
        {
            self.tell_migration(now, at, MigrationState::ProbingSuccessful);
            if self.side.is_client() {
                self.move_to_probed(now, at);
            }
        }
    }

    /// The peer sent something that is no probe: if it came from a new address and is the newest
    /// packet of the path, the peer has moved there (RFC 9000, section 9.3).
    pub(super) fn follow_peer(&mut self, now: Instant, packet: &Opened, is_newest: bool) {
        let addresses = packet.arrival.tuple;
        let at = packet.path;
        if self.paths[at].is_abandoned() {
            return;
        }
        let active = &mut self.paths[at].tuples.active;
        if active.addresses == addresses {
            return;
        }
        if active.addresses.matches(&addresses) {
            if active.addresses.local.ip().is_unspecified() {
                active.addresses.local = addresses.local;
            }
            return;
        }
        if !is_newest || self.side.is_client() || !self.progress.is_confirmed() {
            return;
        }
        let old = active.addresses;
        let rebinding = old.remote.ip() == addresses.remote.ip();
        let may_migrate = self
            .server
            .as_ref()
            .is_none_or(|server| server.config.migration);
        let to_preferred = self.is_preferred(addresses.local);
        if !rebinding && !may_migrate && !to_preferred {
            return;
        }
        let tuples = &mut self.paths[at].tuples;
        let known = [&mut tuples.probed, &mut tuples.previous]
            .into_iter()
            .find_map(|slot| slot.take_if(|tuple| tuple.addresses.matches(&addresses)));
        let mut tuple = match known {
            Some(known) => *known,
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
        // A peer that kept its ID does not know that it moved, and expects none of ours to change.
        if tuple.cid.is_none() && packet.dcid != self.paths[at].active_local_cid {
            tuple.cid = self.paths[at].remote_cids.next_unused();
        }
        self.paths[at].active_local_cid = packet.dcid;
        self.move_to(now, at, tuple, !rebinding);
        // The old path is asked too: this may be an attacker who repeats packets (section 9.3.3).
        let validation = self.validation(now, at);
        if let Some(previous) = &mut self.paths[at].tuples.previous {
            previous.validation = Some(validation);
        }
    }

    /// Data takes `tuple` from now on; the one in use becomes the way back.
    fn move_to(&mut self, now: Instant, at: Slot, tuple: Tuple, reset: bool) {
        let is_main = at == self.paths.main();
        if reset && is_main {
            self.abandon_resume(now);
            self.tell_history(now);
        }
        let cid = tuple.cid;
        let path = &mut self.paths[at];
        for segment in path.queue.drain() {
            self.streams.return_segment(&segment);
        }
        let old_cid = (
            path.remote_cids.active_sequence(),
            *path.remote_cids.active(),
        );
        let mut old = std::mem::replace(&mut path.tuples.active, tuple);
        let old_generation = old.generation;
        if let Some((sequence, _)) = cid {
            path.remote_cids.activate(sequence);
            old.cid = Some(old_cid);
        }
        let replaced = match old.amplification.is_validated() {
            true => path.tuples.previous.replace(Box::new(old)),
            false => Some(Box::new(old)),
        };
        if let Some((sequence, _)) = replaced.and_then(|tuple| tuple.cid) {
            path.remote_cids.retire(sequence);
        }
        if reset {
            self.moved |= is_main;
            let first = match is_main {
                true => self.first_window_elsewhere(now),
                false => self.first_window_at(now, &self.paths[at].tuples.active),
            };
            let size = self.paths[at].tuples.active.mtu.current();
            let recovery = self.recovery_config(first, size, self.config.initial_rtt);
            self.paths[at].reset_recovery(recovery);
            self.tell_first_window(now, at);
            if is_main {
                self.begin_resume(now, true);
                self.join_bundle(now, true);
            }
            self.change_group(now, at);
        } else {
            let size = path.tuples.active.mtu.current();
            path.recovery.on_mtu(size);
            path.recovery.on_rebinding(old_generation);
        }
        self.mailbox.application.push_back(Event::PathChanged);
        self.tell_migration(now, at, MigrationState::MigrationStarted);
        self.tell_path(now, at);
    }

    /// Client: the socket has another local address now, and so have the paths that share the main one's
    /// addresses.
    ///
    /// Sending goes on from there at once, with another connection ID if the server gave one, while
    /// the server validates the address.
    pub fn rebind(&mut self, now: Instant, local: SocketAddr) {
        if self.side.is_server() || !self.lifecycle.is_open() {
            return;
        }
        let main = self.paths.main();
        let beside: Vec<Slot> = self.paths.beside(main).collect();
        self.rebind_path(now, main, local);
        for at in beside {
            self.rebind_path(now, at, local);
        }
        self.after_input(now);
    }

    fn rebind_path(&mut self, now: Instant, at: Slot, local: SocketAddr) {
        let addresses = FourTuple {
            local,
            ..self.paths[at].tuples.active.addresses
        };
        if !self.is_confirmed() || self.peer.disable_active_migration {
            self.paths[at].tuples.active.addresses = addresses;
        } else {
            let mut tuple = self.new_tuple(addresses);
            tuple.amplification = AmplificationLimit::validated();
            tuple.validation = Some(self.validation(now, at));
            tuple.cid = self.paths[at].remote_cids.next_unused();
            self.move_to(now, at, tuple, true);
        }
        self.paths[at].ping_due = true;
    }

    /// Client: the server wants to be talked to elsewhere (RFC 9000, section 9.6).
    pub(super) fn try_preferred_address(&mut self, now: Instant) {
        let Some(preferred) = self.peer.preferred_address.take() else {
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
        let mut tuple = self.new_tuple(FourTuple {
            local: active.local,
            remote,
        });
        tuple.amplification = AmplificationLimit::validated();
        tuple.cid = Some(cid);
        tuple.validation = Some(self.validation(now, at));
        self.replace_probed(at, tuple);
        self.tell_migration(now, at, MigrationState::ProbingStarted);
    }

    fn move_to_probed(&mut self, now: Instant, at: Slot) {
        if let Some(tuple) = self.paths[at].tuples.probed.take() {
            self.move_to(now, at, *tuple, true);
            self.paths[at].ping_due = true;
        }
    }

    fn is_preferred(&self, local: SocketAddr) -> bool {
        self.server
            .as_ref()
            .is_some_and(|server| server.config.preferred_address == Some(local))
    }

    /// The endpoint must know which stateless resets are for us.
    pub(super) fn tell_reset_tokens(&mut self) {
        for path in self.paths.iter_mut() {
            while let Some(change) = path.remote_cids.poll_token_change() {
                self.mailbox.endpoint.push_back(match change {
                    TokenChange::Add(token) => EndpointEvent::ResetTokenAdded(token),
                    TokenChange::Remove(token) => EndpointEvent::ResetTokenRemoved(token),
                });
            }
        }
    }

    /// Validations of a path that were not answered are given up.
    pub(super) fn on_validation_timeout(&mut self, now: Instant, at: Slot) {
        let expired = |tuple: &Tuple| {
            tuple
                .validation
                .as_ref()
                .is_some_and(|validation| validation.is_expired(now))
        };
        let path = &mut self.paths[at];
        for slot in [&mut path.tuples.previous, &mut path.tuples.probed] {
            if let Some(dead) = slot.take_if(|tuple| expired(tuple))
                && let Some((sequence, _)) = dead.cid
            {
                path.remote_cids.retire(sequence);
            }
        }
        if !expired(&path.tuples.active) {
            return;
        }
        if self.paths[at].stage == Stage::Opening {
            return self.end_path(now, at, ErrorCode::PATH_UNSTABLE_OR_POOR);
        }
        let is_main = at == self.paths.main();
        if is_main {
            self.abandon_resume(now);
        }
        let path = &mut self.paths[at];
        path.tuples.active.validation = None;
        match path.tuples.previous.take() {
            Some(mut previous) => {
                previous.validation = None;
                let cid = previous.cid.take();
                let failed = std::mem::replace(&mut path.tuples.active, *previous);
                if let (Some((sequence, _)), Some(_)) = (cid, failed.cid) {
                    path.remote_cids.activate(sequence);
                }
                if let Some((sequence, _)) = failed.cid {
                    path.remote_cids.retire(sequence);
                }
                let now_at = self.paths[at].tuples.active.addresses.remote.ip();
                if failed.addresses.remote.ip() != now_at {
                    if is_main {
                        self.begin_here_again(now);
                        self.join_bundle(now, true);
                    }
                    self.change_group(now, at);
                }
                self.mailbox.application.push_back(Event::PathChanged);
                self.tell_migration(now, at, MigrationState::MigrationAbandoned);
                self.tell_path(now, at);
            }
            None if self.has_open_path_beside(at) => {
                self.end_path(now, at, ErrorCode::PATH_UNSTABLE_OR_POOR);
            }
            None if self.side.is_server() => self.fail(
                now,
                TransportError::new(ErrorCode::NO_VIABLE_PATH, "the peer's address is not valid"),
            ),
            None => {}
        }
    }

    /// The peer's ID for probes on a 4-tuple: its own, or another if the peer had that one retired.
    fn probe_destination(&mut self, at: Slot, generation: u32) -> ConnectionId {
        let path = &mut self.paths[at];
        let ids = &mut path.remote_cids;
        if let Some(tuple) = path
            .tuples
            .inactive()
            .find(|tuple| tuple.generation == generation)
            && let Some((sequence, _)) = tuple.cid
        {
            if !ids.holds(sequence) {
                tuple.cid = ids.next_unused();
            }
            if let Some((_, id)) = tuple.cid {
                return id;
            }
        }
        *ids.active()
    }

    /// A datagram with a challenge or a response, for any of the 4-tuples.
    pub(super) fn transmit_path_probe(
        &mut self,
        now: Instant,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.keys.one_rtt.as_ref()?;
        let mut slots = self.paths.slots();
        slots.find_map(|at| self.transmit_probe_of(now, at, buf))
    }

    fn transmit_probe_of(&mut self, now: Instant, at: Slot, buf: &mut Vec<u8>) -> Option<Transmit> {
        if self.paths[at].is_abandoned() {
            return None;
        }
        let is_opening = self.paths[at].stage == Stage::Opening;
        let generation = {
            let tuples = &mut self.paths[at].tuples;
            let active = &tuples.active;
            // Nothing but probes takes a path that is not open yet.
            let answers = is_opening && active.responses.is_due();
            let active_due = (active.may_send() && (answers || active.is_challenge_due(now)))
                .then_some(active.generation);
            let inactive_due = tuples
                .inactive()
                .filter(|tuple| tuple.may_send())
                .find(|tuple| tuple.responses.is_due() || tuple.is_challenge_due(now))
                .map(|tuple| tuple.generation);
            active_due.or(inactive_due)?
        };
        let dcid = self.probe_destination(at, generation);
        let tuple = self.paths[at].tuples.by_generation(generation)?;
        let credit = usize::try_from(tuple.amplification.credit()).unwrap_or(usize::MAX);
        let full = usize::from(MIN_DATAGRAM_SIZE);
        let envelope = Envelope {
            path: at,
            end: buf.len() + full.min(credit),
            ecn: false,
            tuple: generation,
            dcid,
        };
        let addresses = tuple.addresses;
        let transmit = self.transmit_alone(
            now,
            (addresses, envelope),
            full,
            buf,
            |this, packet, buf| {
                let rng = this.dice.rng();
                let Some(tuple) = this.paths[at].tuples.by_generation(generation) else {
                    return false;
                };
                let mut written = tuple.responses.write_frames(buf, packet.limit);
                if let Some(validation) = &mut tuple.validation {
                    written |= validation.write_frames(now, rng, buf, packet.limit);
                }
                packet.ack_eliciting = written;
                written
            },
        );
        let transmit = transmit.ok().flatten()?;
        if let Some(tuple) = self.paths[at].tuples.by_generation(generation) {
            tuple.amplification.on_sent(transmit.size as u64);
            if let Some(validation) = &mut tuple.validation {
                validation.on_sent(transmit.size);
            }
        }
        Some(transmit)
    }
}
