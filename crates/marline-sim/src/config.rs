//! The settings of a simulation.

use std::time::Duration;

use marline_link::Seed;

use crate::fabric::EcmpHash;

/// 2023-11-14 22:13:20 UTC.
const START_DATE: Duration = Duration::from_secs(1_700_000_000);

/// The settings of a simulation and its hosts.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The seed from which those of the hosts derive. Links have seeds of their own.
    pub seed: Seed,
    /// The hash by which routers distribute flows over next hops of equal cost.
    pub flow_hash: EcmpHash,
    /// Bytes of payload that a socket keeps until they are read; more are dropped.
    pub receive_buffer: usize,
    /// Bytes of the largest IP packet that hosts send.
    pub mtu: usize,
    /// The most datagrams of one call of
    /// [`try_send`](marline::runtime::UdpSocket::try_send).
    pub max_gso_segments: usize,
    /// Whether hosts drop corrupted packets, as with the checksum of UDP. If not, payloads arrive with an
    /// inverted bit; a packet with an inverted bit in its header is dropped in any case.
    pub checksums: bool,
    /// The date at time 0, as time since 1970-01-01 UTC.
    pub beginning: Duration,
}

impl SimConfig {
    /// The defaults, with this seed.
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            flow_hash: EcmpHash::default(),
            receive_buffer: 1 << 20,
            mtu: 1500,
            max_gso_segments: 64,
            checksums: true,
            beginning: START_DATE,
        }
    }
}
