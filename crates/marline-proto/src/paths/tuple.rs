//! The inner layer of a path: one pair of addresses at a time (RFC 9000, sections 8, 9, 13.4 and 14).

use super::{AmplificationLimit, EcnValidation, MtuDiscovery, RemoteCid, Responses, Validation};
use crate::config::TransportConfig;
use crate::limits::{CHALLENGE_CREDIT, MIN_DATAGRAM_SIZE, MIN_PACKET_SPACE};
use crate::time::Instant;
use crate::tuple::FourTuple;

/// A 4-tuple, and what is known about the path between its ends.
#[derive(Debug)]
pub(crate) struct Tuple {
    /// Distinguishes it from earlier 4-tuples of the same path.
    pub(crate) generation: u32,
    pub(crate) addresses: FourTuple,
    /// The peer's connection ID taken for it, with its sequence number; `None` where the path's
    /// active one serves.
    pub(crate) cid: Option<RemoteCid>,
    pub(crate) amplification: AmplificationLimit,
    /// The validation under way, if any.
    pub(crate) validation: Option<Validation>,
    pub(crate) responses: Responses,
    pub(crate) mtu: MtuDiscovery,
    pub(crate) ecn: EcnValidation,
}

impl Tuple {
    /// A 4-tuple about which nothing is known.
    pub(crate) fn new(config: &TransportConfig, generation: u32, addresses: FourTuple) -> Self {
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
            ecn: EcnValidation::new(config.ect()),
        }
    }

    /// What data may take of the amplification limit, in bytes. Some is kept for challenges: only an answer
    /// ends the limit.
    pub(crate) fn credit_for_data(&self) -> u64 {
        let credit = self.amplification.credit();
        let is_limited = self.validation.is_some() && !self.amplification.is_validated();
        credit.saturating_sub(if is_limited { CHALLENGE_CREDIT } else { 0 })
    }

    /// Whether that leaves room for a packet.
    pub(crate) fn may_send_data(&self) -> bool {
        self.credit_for_data() >= MIN_PACKET_SPACE as u64
    }

    /// Whether the amplification limit leaves room for a packet.
    pub(super) fn may_send(&self) -> bool {
        self.amplification.credit() >= MIN_PACKET_SPACE as u64
    }

    pub(super) fn is_challenge_due(&self, now: Instant) -> bool {
        self.validation
            .as_ref()
            .is_some_and(|validation| validation.is_due(now))
    }

    /// When its validation has something to do that the amplification limit permits.
    fn next_validation_timeout(&self) -> Option<Instant> {
        let validation = self.validation.as_ref()?;
        match self.may_send() {
            true => Some(validation.next_timeout()),
            false => validation.deadline(),
        }
    }
}

/// The 4-tuples of one path: the one in use, the one it came from until the new one is validated,
/// and one that is probed.
#[derive(Debug)]
pub(crate) struct Tuples {
    pub(crate) active: Tuple,
    /// Where to return if `active` fails validation (RFC 9000, section 9.3.2).
    pub(crate) previous: Option<Box<Tuple>>,
    /// Probed on our own account or on the peer's, carrying no data.
    pub(crate) probed: Option<Box<Tuple>>,
}

impl Tuples {
    pub(crate) fn new(active: Tuple) -> Self {
        Self {
            active,
            previous: None,
            probed: None,
        }
    }

    /// The tuple with these addresses.
    pub(crate) fn find(&mut self, addresses: &FourTuple) -> Option<&mut Tuple> {
        if self.active.addresses.matches(addresses) {
            return Some(&mut self.active);
        }
        self.previous
            .as_deref_mut()
            .into_iter()
            .chain(self.probed.as_deref_mut())
            .find(|tuple| tuple.addresses.matches(addresses))
    }

    /// The tuple of this generation.
    pub(crate) fn by_generation(&mut self, generation: u32) -> Option<&mut Tuple> {
        self.all().find(|tuple| tuple.generation == generation)
    }

    /// Those that are not in use.
    pub(crate) fn inactive(&mut self) -> impl Iterator<Item = &mut Tuple> {
        self.previous
            .as_deref_mut()
            .into_iter()
            .chain(self.probed.as_deref_mut())
    }

    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Tuple> {
        std::iter::once(&mut self.active)
            .chain(self.previous.as_deref_mut())
            .chain(self.probed.as_deref_mut())
    }

    /// When a validation of any of them has something to do.
    pub(crate) fn next_validation_timeout(&self) -> Option<Instant> {
        let inactive = self.previous.iter().chain(&self.probed);
        std::iter::once(&self.active)
            .chain(inactive.map(|tuple| &**tuple))
            .filter_map(Tuple::next_validation_timeout)
            .min()
    }
}
