//! The settings of a simulation.

use std::time::Duration;

use marline_link::Seed;

use crate::fabric::EcmpHash;

/// 2023-11-14 22:13:20 UTC.
const START_DATE: Duration = Duration::from_secs(1_700_000_000);

/// The settings of a simulation and its hosts.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Seed from which those of the hosts derive. Links have their own seeds.
    pub seed: Seed,
    /// Hash by which routers distribute flows over equal-cost next hops.
    pub flow_hash: EcmpHash,
    /// Receive buffer of a socket, in bytes of payload; further packets are dropped.
    pub receive_buffer: usize,
    /// MTU of hosts, in bytes of the IP packet.
    pub mtu: usize,
    /// Maximum number of datagrams in one call of
    /// [`try_send`](marline::runtime::UdpSocket::try_send).
    pub max_gso_segments: usize,
    /// Whether hosts drop corrupted packets, as a UDP checksum would. Otherwise payloads arrive with an
    /// inverted bit; a packet with an inverted bit in its header is dropped in any case.
    pub checksums: bool,
    /// Date at time 0, since 1970-01-01 UTC.
    pub beginning: Duration,
}

impl SimConfig {
    /// The default settings with this seed.
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
