//! The 4-tuples of a path change: NAT rebinding, migration, preferred address (RFC 9000, sections 8.2 and 9).

use std::net::SocketAddr;

use marline_wire::ConnectionId;
use marline_wire::frame::{PathChallenge, PathResponse};
use marline_wire::packet::truncate_for_reordering;

use super::path::{Path, Stage};
use super::{ChallengePace, Proof, RemoteCid, Tuple, Validation};
use crate::crypto::TAG_LEN;
use crate::limits::{MIN_PACKET_SPACE, RESERVED_CHALLENGES};
use crate::time::Instant;
use crate::tuple::FourTuple;

/// What a PATH_RESPONSE has proven to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proven {
    /// A path that was not open: it can be opened.
    Opening,
    /// The 4-tuple in use.
    Active,
    /// One that was probed.
    Probed,
}

/// Why a server looks, or does not look, at packets from a new address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MigrationRules {
    /// Whether this is a server whose handshake is confirmed: only these follow a migration.
    pub(crate) follows: bool,
    /// Whether clients may move to another host.
    pub(crate) allows_migration: bool,
    /// The address at which the server would rather be talked to.
    pub(crate) preferred: Option<SocketAddr>,
}

/// The peer has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerMove {
    /// Whether the host is the same, so that recovery and congestion control continue (RFC 9000, section 9.4).
    pub(crate) is_rebinding: bool,
}

/// What became of a validation that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValidationFailure {
    /// The path was not open, and never will be.
    NeverOpened,
    /// The path takes the 4-tuple before again.
    Returned {
        /// Whether that leads to another host.
        to_other_host: bool,
    },
    /// There is no 4-tuple to return to.
    Stranded,
}

/// A datagram is due that validates a 4-tuple, or answers the peer who does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueProbe {
    /// The 4-tuple's generation.
    pub(crate) generation: u32,
    pub(crate) addresses: FourTuple,
    pub(crate) destination: ConnectionId,
    /// What the amplification limit permits, in bytes.
    pub(crate) credit: u64,
    pub(crate) pace: ChallengePace,
}

impl Path {
    /// A 4-tuple is probed instead of the one before.
    pub(crate) fn set_probed(&mut self, tuple: Tuple) {
        self.stop_probing();
        self.tuples.probed = Some(Box::new(tuple));
    }

    /// The 4-tuple that is probed, if there is one, is of no use any more.
    pub(crate) fn stop_probing(&mut self) {
        let probed = self.tuples.probed.take();
        if let Some(RemoteCid { sequence, .. }) = probed.and_then(|tuple| tuple.cid) {
            self.remote_cids.retire(sequence);
        }
    }

    /// Handles a PATH_RESPONSE received on any path; returns what it validates of this one.
    pub(crate) fn on_response(&mut self, now: Instant, frame: &PathResponse) -> Option<Proven> {
        let mut generation = None;
        for tuple in self.tuples.all() {
            let Some(validation) = &mut tuple.validation else {
                continue;
            };
            let Some(proof) = validation.on_response(now, frame) else {
                continue;
            };
            tuple.amplification.on_validated();
            if proof == Proof::Path {
                tuple.validation = None;
                generation = Some(tuple.generation);
            }
        }
        let generation = generation?;
        if self.tuples.active.generation != generation {
            let probed = self.tuples.probed.as_ref();
            let is_probed = probed.is_some_and(|probed| probed.generation == generation);
            return is_probed.then_some(Proven::Probed);
        }
        // There is no need to return to it any more.
        let previous = self.tuples.previous.take();
        if let Some(RemoteCid { sequence, .. }) = previous.and_then(|previous| previous.cid) {
            self.remote_cids.retire(sequence);
        }
        Some(match self.stage {
            Stage::Opening => Proven::Opening,
            Stage::Open | Stage::Abandoned { .. } => Proven::Active,
        })
    }

    /// The peer sent something that is no probe from `addresses`: if that is a new address and the packet the
    /// newest of the path, the peer has moved there (RFC 9000, section 9.3).
    pub(crate) fn peer_move(
        &mut self,
        addresses: &FourTuple,
        is_newest: bool,
        rules: &MigrationRules,
    ) -> Option<PeerMove> {
        if self.is_abandoned() {
            return None;
        }
        let active = &mut self.tuples.active.addresses;
        if active == addresses {
            if is_newest && rules.follows {
                self.stop_persisting();
            }
            return None;
        }
        if active.matches(addresses) {
            if active.local.ip().is_unspecified() {
                active.local = addresses.local;
            }
            return None;
        }
        if !is_newest || !rules.follows {
            return None;
        }
        let is_rebinding = active.remote.ip() == addresses.remote.ip();
        let is_allowed =
            is_rebinding || rules.allows_migration || rules.preferred == Some(addresses.local);
        is_allowed.then_some(PeerMove { is_rebinding })
    }

    /// The peer is at the 4-tuple in use, so that it need not be looked for where validation failed before.
    fn stop_persisting(&mut self) {
        let is_persistent = |tuple: &Tuple| {
            let validation = tuple.validation.as_ref();
            validation.is_some_and(Validation::is_persistent)
        };
        let stopped = self.tuples.probed.take_if(|tuple| is_persistent(tuple));
        if let Some(RemoteCid { sequence, .. }) = stopped.and_then(|tuple| tuple.cid) {
            self.remote_cids.retire(sequence);
        }
    }

    /// Takes out the 4-tuple with these addresses, if it was used before or is probed.
    pub(crate) fn take_known(&mut self, addresses: &FourTuple) -> Option<Tuple> {
        let tuples = &mut self.tuples;
        [&mut tuples.probed, &mut tuples.previous]
            .into_iter()
            .find_map(|slot| slot.take_if(|tuple| tuple.addresses.matches(addresses)))
            .map(|tuple| *tuple)
    }

    /// Makes `tuple` the active one; the former is kept to return to, if it was ever validated.
    /// Returns its generation.
    pub(crate) fn move_to(&mut self, tuple: Tuple) -> u32 {
        let cid = tuple.cid;
        let old_cid = RemoteCid {
            sequence: self.remote_cids.active_sequence(),
            id: *self.remote_cids.active(),
        };
        let mut old = std::mem::replace(&mut self.tuples.active, tuple);
        let generation = old.generation;
        if let Some(RemoteCid { sequence, .. }) = cid {
            self.remote_cids.activate(sequence);
            old.cid = Some(old_cid);
        }
        let replaced = match old.amplification.is_validated() {
            true => self.tuples.previous.replace(Box::new(old)),
            false => Some(Box::new(old)),
        };
        if let Some(RemoteCid { sequence, .. }) = replaced.and_then(|tuple| tuple.cid) {
            self.remote_cids.retire(sequence);
        }
        generation
    }

    /// Ends the validations that were not answered in time (RFC 9000, section 9.3.2). Returns what became of
    /// the 4-tuple in use, if it was one of them.
    ///
    /// The last validated 4-tuple stays until the one in use is validated: it is the one to return to. If this end
    /// `keeps_trying`, the one that failed is challenged further, ever less often: the peer may still be there after
    /// an outage.
    pub(crate) fn expire_validations(
        &mut self,
        now: Instant,
        keeps_trying: bool,
    ) -> Option<ValidationFailure> {
        let is_expired = |tuple: &Tuple| {
            let validation = tuple.validation.as_ref();
            validation.is_some_and(|validation| validation.is_expired(now))
        };
        if let Some(previous) = &mut self.tuples.previous
            && self.tuples.active.validation.is_some()
            && is_expired(previous)
        {
            previous.validation = None;
        }
        for slot in [&mut self.tuples.previous, &mut self.tuples.probed] {
            if let Some(dead) = slot.take_if(|tuple| is_expired(tuple))
                && let Some(RemoteCid { sequence, .. }) = dead.cid
            {
                self.remote_cids.retire(sequence);
            }
        }
        if !is_expired(&self.tuples.active) {
            return None;
        }
        if self.stage == Stage::Opening {
            return Some(ValidationFailure::NeverOpened);
        }
        let Some(mut previous) = self.tuples.previous.take() else {
            self.tuples.active.validation = None;
            return Some(ValidationFailure::Stranded);
        };
        previous.validation = None;
        let cid = previous.cid.take();
        let mut failed = std::mem::replace(&mut self.tuples.active, *previous);
        if let (Some(RemoteCid { sequence, .. }), Some(_)) = (cid, failed.cid) {
            self.remote_cids.activate(sequence);
        }
        let host = self.tuples.active.addresses.remote.ip();
        let to_other_host = failed.addresses.remote.ip() != host;
        if keeps_trying && let Some(validation) = &mut failed.validation {
            validation.persist();
            self.set_probed(failed);
        } else if let Some(RemoteCid { sequence, .. }) = failed.cid {
            self.remote_cids.retire(sequence);
        }
        Some(ValidationFailure::Returned { to_other_host })
    }

    /// The 4-tuple for which a challenge or a response is due, if there is one.
    pub(crate) fn due_probe(&mut self, now: Instant) -> Option<DueProbe> {
        if self.is_abandoned() {
            return None;
        }
        let due = self
            .tuples
            .iter()
            .find(|tuple| self.is_probe_due(now, tuple));
        let generation = due?.generation;
        let destination = self.probe_destination(generation);
        let mut tuples = self.tuples.iter();
        let tuple = tuples.find(|tuple| tuple.generation == generation)?;
        let pace = self.challenge_pace(tuple);
        // The peer may have had a shorter ID retired.
        (pace.affordable > 0).then(|| DueProbe {
            generation,
            addresses: tuple.addresses,
            destination,
            credit: tuple.amplification.credit(),
            pace,
        })
    }

    /// Whether a challenge or a response is due on a 4-tuple. Responses on the one in use leave with other frames, unless
    /// nothing else may be sent there.
    fn is_probe_due(&self, now: Instant, tuple: &Tuple) -> bool {
        if tuple.validation.is_none() && !tuple.responses.is_due() {
            return false;
        }
        let pace = self.challenge_pace(tuple);
        let is_alone = !self.is_active(tuple) || self.stage == Stage::Opening || tuple.is_limited();
        let answers = is_alone && tuple.responses.is_due() && pace.affordable > 0;
        let validation = tuple.validation.as_ref();
        answers || validation.is_some_and(|validation| validation.is_due(now, &pace))
    }

    /// When a validation of a 4-tuple has something to do.
    pub(crate) fn next_validation_timeout(&self) -> Option<Instant> {
        let timeout = |tuple: &Tuple| {
            let validation = tuple.validation.as_ref()?;
            validation.next_timeout(&self.challenge_pace(tuple))
        };
        self.tuples.iter().filter_map(timeout).min()
    }

    fn is_active(&self, tuple: &Tuple) -> bool {
        tuple.generation == self.tuples.active.generation
    }

    /// How fast challenges leave on a 4-tuple: as Initial packets would (RFC 9000, section 8.2.1). The round-trip times of
    /// the one in use are known, or assumed after a change of the port alone; others may differ.
    fn challenge_pace(&self, tuple: &Tuple) -> ChallengePace {
        let known = self.recovery.rtt().pto();
        let validation = tuple.validation.as_ref();
        let unknown = validation.map_or(known, Validation::unknown_pto);
        let interval = match self.is_active(tuple) {
            true => known,
            false => known.max(unknown),
        };
        let id = match tuple.cid.filter(|_| !self.is_active(tuple)) {
            Some(RemoteCid { id, .. }) => id,
            None => *self.remote_cids.active(),
        };
        ChallengePace {
            interval,
            affordable: tuple.amplification.credit() / self.challenge_size(&id),
        }
    }

    /// The size of the smallest datagram with a PATH_CHALLENGE, or with a PATH_RESPONSE, to the peer's `id`, in bytes.
    fn challenge_size(&self, id: &ConnectionId) -> u64 {
        let sent = &self.space.sent;
        // The next packet number may be left out.
        let number = truncate_for_reordering(sent.next_number() + 1, sent.largest_acked());
        let header = 1 + id.len() + number.len();
        (header + PathChallenge { data: [0; 8] }.size() + TAG_LEN) as u64
    }

    /// The part that data may take of the amplification limit of the 4-tuple in use, in bytes. Some is kept for challenges: only an
    /// answer ends the limit.
    pub(crate) fn credit_for_data(&self) -> u64 {
        let active = &self.tuples.active;
        let credit = active.amplification.credit();
        if !active.is_limited() {
            return credit;
        }
        let challenge = self.challenge_size(self.remote_cids.active());
        credit.saturating_sub(RESERVED_CHALLENGES * challenge)
    }

    /// Whether that leaves room for a packet.
    pub(crate) fn may_send_data(&self) -> bool {
        self.credit_for_data() >= MIN_PACKET_SPACE as u64
    }

    /// The peer's ID for probes on a 4-tuple: its own, or another if the peer had that one retired.
    fn probe_destination(&mut self, generation: u32) -> ConnectionId {
        let ids = &mut self.remote_cids;
        let mut inactive = self.tuples.inactive();
        if let Some(tuple) = inactive.find(|tuple| tuple.generation == generation)
            && let Some(RemoteCid { sequence, .. }) = tuple.cid
        {
            if !ids.holds(sequence) {
                tuple.cid = ids.next_unused();
            }
            if let Some(RemoteCid { id, .. }) = tuple.cid {
                return id;
            }
        }
        *ids.active()
    }
}
