//! Random numbers for values that a peer can observe or must not predict.

use chacha20::ChaCha12Rng;
use marline_wire::ConnectionId;
use marline_wire::id::MAX_CONNECTION_ID_LEN;
use marline_wire::params::ReservedParameter;
use rand::{Rng, RngExt, SeedableRng};

/// A cryptographic random number generator (ChaCha with 12 rounds): its output reveals neither its later output nor
/// that of generators [forked](Self::fork) from it. Equal seeds give equal numbers.
pub(crate) struct SecureRng(ChaCha12Rng);

impl SecureRng {
    /// A generator seeded with `seed`, which must be secret outside of a simulation.
    pub(crate) fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// A generator that is independent of this one.
    pub(crate) fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.0.fill_bytes(&mut seed);
        Self::from_seed(seed)
    }

    /// Fills `bytes`.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
        #[cfg(test)]
        drawn::record(bytes);
    }

    /// A number of 64 bits.
    pub(crate) fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number of 32 bits.
    pub(crate) fn word(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// A number of 8 bits.
    pub(crate) fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.fill(&mut byte);
        byte[0]
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let number = self.0.random_range(0..end);
        #[cfg(test)]
        drawn::record(&number.to_le_bytes());
        number
    }

    /// One bit.
    pub(crate) fn bit(&mut self) -> bool {
        self.0.random()
    }

    /// A connection ID of `len` bytes, 20 at most.
    pub(crate) fn connection_id(&mut self, len: usize) -> ConnectionId {
        let mut bytes = [0; MAX_CONNECTION_ID_LEN];
        let len = len.min(bytes.len());
        self.fill(&mut bytes[..len]);
        ConnectionId::new(&bytes[..len]).unwrap_or(ConnectionId::EMPTY)
    }
}

impl std::fmt::Debug for SecureRng {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecureRng")
    }
}

/// The random number generator of a connection, and values drawn from it.
#[derive(Debug)]
pub(crate) struct ConnectionRng {
    secure: SecureRng,
    /// Constant spin bit of all packets, as it is not used (RFC 9000, section 17.4).
    spin: bool,
}

impl ConnectionRng {
    pub(crate) fn new(mut secure: SecureRng) -> Self {
        let spin = secure.bit();
        Self { secure, spin }
    }

    /// A seed for a policy's own generator.
    pub(crate) fn seed(&mut self) -> u64 {
        self.secure.number()
    }

    /// A number that identifies something.
    pub(crate) fn number(&mut self) -> u64 {
        self.secure.number()
    }

    /// One bit.
    pub(crate) fn bit(&mut self) -> bool {
        self.secure.bit()
    }

    /// The value of the spin bit.
    pub(crate) fn spin(&self) -> bool {
        self.spin
    }

    /// The next packet number to skip (RFC 9000, section 21.4). Intervals grow: a peer that has not acknowledged a
    /// skipped number is tested less often.
    pub(crate) fn next_skip(&mut self, last: u64) -> u64 {
        let base = last.clamp(64, 1 << 16);
        last + base + self.secure.below(base)
    }

    /// A connection ID of `len` bytes.
    pub(crate) fn connection_id(&mut self, len: usize) -> ConnectionId {
        self.secure.connection_id(len)
    }

    /// A reserved transport parameter, which must be ignored (RFC 9000, section 18.1).
    pub(crate) fn reserved_parameter(&mut self) -> ReservedParameter {
        let id = 31 * self.secure.below(1 << 16) + 27;
        let mut value = vec![0; self.secure.below(16) as usize];
        self.secure.fill(&mut value);
        ReservedParameter { id, value }
    }

    /// The generator itself.
    pub(crate) fn secure(&mut self) -> &mut SecureRng {
        &mut self.secure
    }
}

/// A record of the values drawn on a test's thread.
#[cfg(test)]
pub(crate) mod drawn {
    use std::cell::RefCell;

    thread_local! {
        static DRAWN: RefCell<Option<Vec<Vec<u8>>>> = const { RefCell::new(None) };
    }

    /// Starts recording.
    pub(crate) fn start() {
        DRAWN.set(Some(Vec::new()));
    }

    pub(super) fn record(bytes: &[u8]) {
        DRAWN.with_borrow_mut(|drawn| {
            if let Some(drawn) = drawn {
                drawn.push(bytes.to_vec());
            }
        });
    }

    /// Whether a draw since [`start`] began with these bytes.
    pub(crate) fn has(bytes: &[u8]) -> bool {
        DRAWN.with_borrow(|drawn| {
            let mut drawn = drawn.iter().flatten();
            drawn.any(|draw| draw.starts_with(bytes))
        })
    }
}

#[cfg(test)]
mod tests;
