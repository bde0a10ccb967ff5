//! Counts of a simulation.

use std::time::Duration;

/// Counts since time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Time on the simulated clock.
    pub virtual_time: Duration,
    /// Packets sent by sockets.
    pub packets_sent: u64,
    /// Packets delivered to a socket.
    pub packets_delivered: u64,
    /// Packets lost by the network.
    pub packets_lost: u64,
    /// Packets with a flipped bit, dropped by a host.
    pub checksum_failures: u64,
    /// Packets dropped because the receive buffer of their socket was full.
    pub buffer_full: u64,
    /// Packets to ports without a socket.
    pub no_socket: u64,
    /// Datagrams rejected by a socket because they were larger than the MTU.
    pub too_large: u64,
    /// Polls of tasks.
    pub polls: u64,
}

impl Statistics {
    /// Packets sent per second of `wall` time.
    pub fn packets_per_second(&self, wall: Duration) -> f64 {
        self.packets_sent as f64 / wall.as_secs_f64()
    }

    /// Seconds of virtual time per second of `wall` time.
    pub fn speed(&self, wall: Duration) -> f64 {
        self.virtual_time.as_secs_f64() / wall.as_secs_f64()
    }
}
