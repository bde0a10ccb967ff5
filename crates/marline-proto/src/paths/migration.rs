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

/// The 4-tuple that a PATH_RESPONSE has validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proven {
    /// That of a path that was not open and can be opened now.
    Opening,
    /// The active 4-tuple.
    Active,
    /// The probed 4-tuple.
    Probed,
}

/// The rules by which a server accepts packets from a new address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MigrationRules {
    /// Whether this is a server whose handshake is confirmed: only these follow a migration.
    pub(crate) follows: bool,
    /// Whether clients may migrate to another host.
    pub(crate) allows_migration: bool,
    /// The server's preferred address.
    pub(crate) preferred: Option<SocketAddr>,
}

/// A migration of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerMove {
    /// Whether the host is the same, so that recovery and congestion control continue (RFC 9000, section 9.4).
    pub(crate) is_rebinding: bool,
}

/// The result of a validation that timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValidationFailure {
    /// The path was not open, and is abandoned.
    NeverOpened,
    /// The path returns to the previous 4-tuple.
    Returned {
        /// Whether it leads to another host.
        to_other_host: bool,
    },
    /// There is no 4-tuple to return to.
    Stranded,
}

/// A datagram is due that validates a 4-tuple, or answers the peer's challenge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueProbe {
    /// Generation of the 4-tuple.
    pub(crate) generation: u32,
    pub(crate) addresses: FourTuple,
    pub(crate) destination: ConnectionId,
    /// Bytes that the amplification limit permits.
    pub(crate) credit: u64,
    pub(crate) pace: ChallengePace,
}

impl Path {
    /// Probes a 4-tuple in place of the one before.
    pub(crate) fn set_probed(&mut self, tuple: Tuple) {
        self.stop_probing();
        self.tuples.probed = Some(Box::new(tuple));
    }

    /// Stops probing a 4-tuple.
    pub(crate) fn stop_probing(&mut self) {
        let probed = self.tuples.probed.take();
        if let Some(RemoteCid { sequence, .. }) = probed.and_then(|tuple| tuple.cid) {
            self.remote_cids.retire(sequence);
        }
    }

    /// Handles a PATH_RESPONSE received on any path; returns which 4-tuple of this path it validates.
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
        // The previous 4-tuple is no longer needed to return to.
        let previous = self.tuples.previous.take();
        if let Some(RemoteCid { sequence, .. }) = previous.and_then(|previous| previous.cid) {
            self.remote_cids.retire(sequence);
        }
        Some(match self.stage {
            Stage::Opening => Proven::Opening,
            Stage::Open | Stage::Abandoned { .. } => Proven::Active,
        })
    }

    /// Handles a non-probing packet from `addresses`: if they are new and the packet is the newest of the
    /// path, the peer has migrated (RFC 9000, section 9.3).
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

    /// Stops further challenges where validation failed before: the peer uses the active 4-tuple.
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

    /// Removes and returns the 4-tuple with these addresses, if it was used before or is probed.
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

    /// Ends validations that timed out (RFC 9000, section 9.3.2). Returns the result for the active 4-tuple,
    /// if it was one of them.
    ///
    /// The last validated 4-tuple is kept until the active one is validated, to return to it. If this end
    /// `keeps_trying`, the one that failed is challenged further, at growing intervals: the peer may still be there
    /// after an outage.
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

    /// The 4-tuple for which a challenge or a response is due, if any.
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
        // The peer may have retired a shorter ID.
        (pace.affordable > 0).then(|| DueProbe {
            generation,
            addresses: tuple.addresses,
            destination,
            credit: tuple.amplification.credit(),
            pace,
        })
    }

    /// Whether a challenge or a response is due on a 4-tuple. Responses on the active one are sent with other frames,
    /// unless nothing else may be sent there.
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

    /// Time of the next action of a validation.
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

    /// Pace of challenges on a 4-tuple: that of Initial packets (RFC 9000, section 8.2.1). The round-trip time is known
    /// for the active 4-tuple, and kept after a change of the port alone; others may differ.
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

    /// Minimum size of a datagram with a PATH_CHALLENGE or a PATH_RESPONSE to the peer's `id`, in bytes.
    fn challenge_size(&self, id: &ConnectionId) -> u64 {
        let sent = &self.space.sent;
        // The next packet number may be skipped.
        let number = truncate_for_reordering(sent.next_number() + 1, sent.largest_acked());
        let header = 1 + id.len() + number.len();
        (header + PathChallenge { data: [0; 8] }.size() + TAG_LEN) as u64
    }

    /// Bytes that data may use of the amplification limit of the active 4-tuple. The rest is reserved for challenges:
    /// only an answer lifts the limit.
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

    /// The peer's ID for probes on a 4-tuple: its own, or another if the peer has retired that one.
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
