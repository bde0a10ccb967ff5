//! The 4-tuples of a path and their state (RFC 9000, sections 8, 9, 13.4 and 14).

use super::{AmplificationLimit, RemoteCid, Responses, Validation};
use crate::config::TransportConfig;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::tuple::{EcnValidation, FourTuple, MtuDiscovery};

/// A 4-tuple, and the known state of the network path between its ends.
#[derive(Debug)]
pub(crate) struct Tuple {
    /// Distinguishes it from earlier 4-tuples of the same path.
    pub(crate) generation: u32,
    pub(crate) addresses: FourTuple,
    /// The peer's connection ID for it, with its sequence number; `None` if the path's active one is used.
    pub(crate) cid: Option<RemoteCid>,
    pub(crate) amplification: AmplificationLimit,
    /// The validation in progress, if any.
    pub(crate) validation: Option<Validation>,
    pub(crate) responses: Responses,
    pub(crate) mtu: MtuDiscovery,
    pub(crate) ecn: EcnValidation,
}

impl Tuple {
    /// A 4-tuple without known state.
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

    /// Whether the amplification limit applies until a challenge is answered.
    pub(super) fn is_limited(&self) -> bool {
        self.validation.is_some() && !self.amplification.is_validated()
    }
}

/// The 4-tuples of one path: the active one, the previous one until the active one is validated,
/// and a probed one.
#[derive(Debug)]
pub(crate) struct Tuples {
    pub(crate) active: Tuple,
    /// The 4-tuple to return to if `active` fails validation (RFC 9000, section 9.3.2).
    pub(crate) previous: Option<Box<Tuple>>,
    /// The 4-tuple probed by this end or by the peer, which carries no data.
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

    /// The 4-tuples that are not active.
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

    /// Shared references to [`Self::all`].
    pub(super) fn iter(&self) -> impl Iterator<Item = &Tuple> {
        let inactive = self.previous.iter().chain(&self.probed);
        std::iter::once(&self.active).chain(inactive.map(|tuple| &**tuple))
    }
}
