//! The random number generator of a connection.

use marline_wire::ConnectionId;
use marline_wire::params::ReservedParameter;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::config::TransportConfig;

/// A seeded generator, and what a connection draws from it.
#[derive(Debug)]
pub(crate) struct ConnectionRng {
    rng: Pcg64Mcg,
    /// The spin bit stays what it was drawn to be (RFC 9000, section 17.4).
    spin: bool,
}

impl ConnectionRng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let spin = rng.random();
        Self { rng, spin }
    }

    /// A seed for a policy's own generator.
    pub(crate) fn seed(&mut self) -> u64 {
        self.rng.random()
    }

    /// A number that identifies something.
    pub(crate) fn number(&mut self) -> u64 {
        self.rng.random()
    }

    /// One bit.
    pub(crate) fn bit(&mut self) -> bool {
        self.rng.random()
    }

    /// The value of the spin bit.
    pub(crate) fn spin(&self) -> bool {
        self.spin
    }

    /// The first packet number that a path leaves out, if it leaves out any.
    pub(crate) fn first_skip(&mut self, config: &TransportConfig) -> u64 {
        match config.skip_packet_numbers {
            true => self.next_skip(0),
            false => u64::MAX,
        }
    }

    /// The next packet number to leave out: ever rarer, because what has been shown once need not
    /// be shown often.
    pub(crate) fn next_skip(&mut self, last: u64) -> u64 {
        let base = last.clamp(64, 1 << 16);
        last + base + self.rng.random_range(0..base)
    }

    /// A connection ID of `len` bytes.
    pub(crate) fn connection_id(&mut self, len: usize) -> ConnectionId {
        let mut bytes = [0; marline_wire::id::MAX_CONNECTION_ID_LEN];
        let len = len.min(bytes.len());
        self.rng.fill_bytes(&mut bytes[..len]);
        ConnectionId::new(&bytes[..len]).unwrap_or(ConnectionId::EMPTY)
    }

    /// A transport parameter that must be ignored (RFC 9000, section 18.1).
    pub(crate) fn reserved_parameter(&mut self) -> ReservedParameter {
        let id = 31 * self.rng.random_range(0..1 << 16) + 27;
        let mut value = vec![0; self.rng.random_range(0..16)];
        self.rng.fill_bytes(&mut value);
        ReservedParameter { id, value }
    }

    /// The generator itself.
    pub(crate) fn inner(&mut self) -> &mut impl Rng {
        &mut self.rng
    }
}
