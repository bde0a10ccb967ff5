//! Addresses change: NAT rebinding, migration, preferred address (RFC 9000, sections 8.2 and 9).

use std::net::SocketAddr;

use marline_wire::frame::{NewConnectionId, PathChallenge, PathResponse, RetireConnectionId};
use marline_wire::{ConnectionId, ErrorCode, TransportError};

use super::Connection;
use super::events::{EndpointEvent, Event};
use super::packet::{Envelope, MIN_ROOM};
use super::path::Path;
use super::receive::Opened;
use crate::config::TransportConfig;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::observe::events::MigrationState;
use crate::paths::{
    AmplificationLimit, EcnValidation, MtuDiscovery, Proof, Responses, TokenChange, Tuple,
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

impl Connection {
    /// Whether datagrams on a new `tuple` are looked at: a client talks to servers it knows only, a server
    /// to no second address before the handshake is confirmed (RFC 9000, section 9).
    pub(super) fn may_come_from(&mut self, tuple: &FourTuple) -> bool {
        let remote_known = self.paths[0]
            .tuples
            .all()
            .any(|known| known.addresses.remote == tuple.remote);
        match self.side.is_client() {
            true => remote_known,
            false => self.confirmed,
        }
    }

    fn new_tuple(&mut self, addresses: FourTuple) -> Tuple {
        self.tuple_generation += 1;
        Tuple::new(&self.config, self.tuple_generation, addresses)
    }

    fn validation(&self, now: Instant) -> Validation {
        Validation::new(now, self.pto().max(self.config.initial_rtt * 3))
    }

    pub(super) fn on_path_challenge(
        &mut self,
        frame: &PathChallenge,
        packet: &Opened,
    ) -> Result<(), TransportError> {
        let addresses = packet.arrival.tuple;
        if let Some(known) = self.paths[0].tuples.find(&addresses) {
            known.responses.on_challenge(frame);
            return Ok(());
        }
        let mut tuple = self.new_tuple(addresses);
        tuple
            .amplification
            .on_received(packet.arrival.datagram as u64);
        tuple.cid = self.paths[0].remote_cids.next_unused();
        tuple.responses.on_challenge(frame);
        self.replace_probed(tuple);
        Ok(())
    }

    fn replace_probed(&mut self, tuple: Tuple) {
        let path = &mut self.paths[0];
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
        let mut proven = None;
        for tuple in self.paths[0].tuples.all() {
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
        let Some(generation) = proven else {
            return Ok(());
        };
        let path = &mut self.paths[0];
        if path.tuples.active.generation == generation {
            // Nobody needs the way back any more.
            let previous = path.tuples.previous.take();
            if let Some((sequence, _)) = previous.and_then(|previous| previous.cid) {
                path.remote_cids.retire(sequence);
            }
            self.tell_migration(now, MigrationState::MigrationComplete);
        } else if path
            .tuples
            .probed
            .as_ref()
            .is_some_and(|probed| probed.generation == generation)
        {
            self.tell_migration(now, MigrationState::ProbingSuccessful);
            if self.side.is_client() {
                self.move_to_probed(now);
            }
        }
        Ok(())
    }

    /// The peer sent something that is no probe: if it came from a new address and is the newest
    /// packet, the peer has moved there (RFC 9000, section 9.3).
    pub(super) fn follow_peer(&mut self, now: Instant, packet: &Opened) {
        let addresses = packet.arrival.tuple;
        let active = &mut self.paths[0].tuples.active;
        if active.addresses == addresses {
            return;
        }
        if active.addresses.matches(&addresses) {
            if active.addresses.local.ip().is_unspecified() {
                active.addresses.local = addresses.local;
            }
            return;
        }
        if !self.newest_packet || self.side.is_client() || !self.confirmed {
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
        let tuples = &mut self.paths[0].tuples;
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
            tuple.validation = Some(self.validation(now));
        }
        // A peer that kept its ID does not know that it moved, and expects none of ours to change.
        if tuple.cid.is_none() && packet.dcid != self.paths[0].active_local_cid {
            tuple.cid = self.paths[0].remote_cids.next_unused();
        }
        self.paths[0].active_local_cid = packet.dcid;
        self.move_to(now, tuple, !rebinding);
        // The old path is asked too: this may be an attacker who repeats packets (section 9.3.3).
        let validation = self.validation(now);
        if let Some(previous) = &mut self.paths[0].tuples.previous {
            previous.validation = Some(validation);
        }
    }

    /// Data takes `tuple` from now on; the one in use becomes the way back.
    fn move_to(&mut self, now: Instant, tuple: Tuple, reset: bool) {
        if reset {
            self.abandon_resume(now);
            self.tell_history(now);
        }
        let cid = tuple.cid;
        let path = &mut self.paths[0];
        for segment in path.queue.drain(..) {
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
            self.moved = true;
            let first = self.first_window_elsewhere(now);
            self.paths[0].reset_recovery(&self.config, first, self.dice.seed());
            self.tell_first_window(now);
            self.begin_resume(now, true);
            self.join_bundle(now, true);
        } else {
            let size = path.tuples.active.mtu.current();
            path.recovery.on_mtu(size);
            path.recovery.former_tuple = Some(old_generation);
        }
        self.mailbox.application.push_back(Event::PathChanged);
        self.tell_migration(now, MigrationState::MigrationStarted);
        self.tell_path(now);
    }

    /// Client: the socket has another local address now.
    ///
    /// Sending goes on from there at once, with another connection ID if the server gave one, while
    /// the server validates the address.
    pub fn rebind(&mut self, now: Instant, local: SocketAddr) {
        let addresses = FourTuple {
            local,
            ..self.paths[0].tuples.active.addresses
        };
        if self.side.is_server() || !self.lifecycle.is_open() {
            return;
        }
        if !self.confirmed || self.peer.disable_active_migration {
            self.paths[0].tuples.active.addresses = addresses;
        } else {
            let mut tuple = self.new_tuple(addresses);
            tuple.amplification = AmplificationLimit::validated();
            tuple.validation = Some(self.validation(now));
            tuple.cid = self.paths[0].remote_cids.next_unused();
            self.move_to(now, tuple, true);
        }
        self.ping_due = true;
        self.after_input(now);
    }

    /// Client: the server wants to be talked to elsewhere (RFC 9000, section 9.6).
    pub(super) fn try_preferred_address(&mut self, now: Instant) {
        let Some(preferred) = self.peer.preferred_address.take() else {
            return;
        };
        let active = self.paths[0].tuples.active.addresses;
        let remote = match active.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.ipv6.map(SocketAddr::V6),
        };
        let Some(remote) = remote else { return };
        let Some(cid) = self.paths[0].remote_cids.next_unused() else {
            return;
        };
        let mut tuple = self.new_tuple(FourTuple {
            local: active.local,
            remote,
        });
        tuple.amplification = AmplificationLimit::validated();
        tuple.cid = Some(cid);
        tuple.validation = Some(self.validation(now));
        self.replace_probed(tuple);
        self.tell_migration(now, MigrationState::ProbingStarted);
    }

    fn move_to_probed(&mut self, now: Instant) {
        if let Some(tuple) = self.paths[0].tuples.probed.take() {
            self.move_to(now, *tuple, true);
            self.ping_due = true;
        }
    }

    fn is_preferred(&self, local: SocketAddr) -> bool {
        self.server
            .as_ref()
            .is_some_and(|server| server.config.preferred_address == Some(local))
    }

    /// The peer issued an ID, and may want others back: a 4-tuple whose ID is gone takes another.
    pub(super) fn on_new_connection_id(
        &mut self,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        let Path {
            remote_cids,
            tuples,
            ..
        } = &mut self.paths[0];
        remote_cids.on_new_connection_id(frame)?;
        for tuple in tuples.inactive() {
            if tuple
                .cid
                .is_some_and(|(sequence, _)| !remote_cids.holds(sequence))
            {
                tuple.cid = remote_cids.next_unused();
            }
        }
        Ok(())
    }

    pub(super) fn on_retire_connection_id(
        &mut self,
        frame: &RetireConnectionId,
        packet: &Opened,
    ) -> Result<(), TransportError> {
        if let Some(id) = self.paths[0].local_cids.on_retire(frame, &packet.dcid)? {
            self.issue_ids = true;
            self.mailbox.endpoint.push_back(EndpointEvent::Retired(id));
        }
        Ok(())
    }

    /// The endpoint must know which stateless resets are for us.
    pub(super) fn tell_reset_tokens(&mut self) {
        while let Some(change) = self.paths[0].remote_cids.poll_token_change() {
            self.mailbox.endpoint.push_back(match change {
                TokenChange::Add(token) => EndpointEvent::ResetTokenAdded(token),
                TokenChange::Remove(token) => EndpointEvent::ResetTokenRemoved(token),
            });
        }
    }

    pub(super) fn next_validation_timeout(&self) -> Option<Instant> {
        let tuples = &self.paths[0].tuples;
        let inactive = tuples
            .previous
            .iter()
            .chain(&tuples.probed)
            .map(|tuple| &**tuple);
        std::iter::once(&tuples.active)
            .chain(inactive)
            .filter_map(Tuple::next_validation_timeout)
            .min()
    }

    /// Validations that were not answered are given up.
    pub(super) fn on_validation_timeout(&mut self, now: Instant) {
        let expired = |tuple: &Tuple| {
            tuple
                .validation
                .as_ref()
                .is_some_and(|validation| validation.is_expired(now))
        };
        let path = &mut self.paths[0];
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
        self.abandon_resume(now);
        let path = &mut self.paths[0];
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
                if failed.addresses.remote.ip() != self.remote_address().ip() {
                    self.begin_here_again(now);
                    self.join_bundle(now, true);
                }
                self.mailbox.application.push_back(Event::PathChanged);
                self.tell_migration(now, MigrationState::MigrationAbandoned);
                self.tell_path(now);
            }
            None if self.side.is_server() => self.fail(
                now,
                TransportError::new(ErrorCode::NO_VIABLE_PATH, "the peer's address is not valid"),
            ),
            None => {}
        }
    }

    /// The peer's ID for probes on a 4-tuple: its own, or another if the peer had that one retired.
    fn probe_destination(&mut self, generation: u32) -> ConnectionId {
        let path = &mut self.paths[0];
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
        let generation = {
            let tuples = &mut self.paths[0].tuples;
            let active = &tuples.active;
            let active_due =
                (active.may_send() && active.is_challenge_due(now)).then_some(active.generation);
            let inactive_due = tuples
                .inactive()
                .filter(|tuple| tuple.may_send())
                .find(|tuple| tuple.responses.is_due() || tuple.is_challenge_due(now))
                .map(|tuple| tuple.generation);
            active_due.or(inactive_due)?
        };
        let dcid = self.probe_destination(generation);
        let tuple = self.paths[0].tuples.by_generation(generation)?;
        let credit = usize::try_from(tuple.amplification.credit()).unwrap_or(usize::MAX);
        let full = usize::from(MIN_DATAGRAM_SIZE);
        let envelope = Envelope {
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
                let Some(tuple) = this.paths[0].tuples.by_generation(generation) else {
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
        if let Some(tuple) = self.paths[0].tuples.by_generation(generation) {
            tuple.amplification.on_sent(transmit.size as u64);
            if let Some(validation) = &mut tuple.validation {
                validation.on_sent(transmit.size);
            }
        }
        Some(transmit)
    }
}
