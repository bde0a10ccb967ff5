//! What a world is made of.

use std::time::Duration;

use marline_link::Seed;

use crate::fabric::EcmpHash;

/// 2023-11-14 22:13:20 UTC.
const BEGINNING: Duration = Duration::from_secs(1_700_000_000);

/// What can be chosen of a world.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Where the seeds of the hosts come from. Links bring their own.
    pub seed: Seed,
    /// How flows are told apart.
    pub flow_hash: EcmpHash,
    /// Bytes of payload that wait at a socket; what comes beyond is dropped.
    pub receive_buffer: usize,
    /// Bytes of the largest IP packet that hosts send.
    pub mtu: usize,
    /// Most datagrams that a socket takes at once.
    pub max_gso_segments: usize,
    /// Whether hosts drop corrupted packets, as the checksum of UDP makes them. If not, payloads
    /// arrive with a bit flipped; a packet with a flip in its header is dropped in any case.
    pub checksums: bool,
    /// The date when the clock is at 0.
    pub beginning: Duration,
}

impl WorldConfig {
    /// All defaults, but for the seed.
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            flow_hash: EcmpHash::default(),
            receive_buffer: 1 << 20,
            mtu: 1500,
            max_gso_segments: 64,
            checksums: true,
            beginning: BEGINNING,
        }
    }
}
