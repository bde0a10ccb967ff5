//! How a simulation is set up.

use std::time::Duration;

use marline_link::Seed;

use crate::fabric::EcmpHash;

/// 2023-11-14 22:13:20 UTC.
const BEGINNING: Duration = Duration::from_secs(1_700_000_000);

/// The settings of a simulation and its hosts.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// From which the seeds of the hosts derive. Links have seeds of their own.
    pub seed: Seed,
    /// How routers tell flows apart that take next hops of equal cost.
    pub flow_hash: EcmpHash,
    /// Bytes of payload that a socket keeps until they are read; more are dropped.
    pub receive_buffer: usize,
    /// Bytes of the largest IP packet that hosts send.
    pub mtu: usize,
    /// The most datagrams of one call of
    /// [`try_send`](marline::runtime::UdpSocket::try_send).
    pub max_gso_segments: usize,
    /// Whether hosts drop corrupted packets, as the checksum of UDP makes them. If not, payloads
    /// arrive with a bit flipped; a packet with a flip in its header is dropped in any case.
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
            beginning: BEGINNING,
        }
    }
}
