//! The settings of a radio cell, as seen by one phone.

use std::time::Duration;

use crate::Seed;
use crate::process::OrnsteinUhlenbeck;
use crate::random::normal;

/// A direction of a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the base station to the phone.
    Downlink,
    /// From the phone to the base station.
    Uplink,
}

impl Direction {
    /// The name of the direction.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Downlink => "downlink",
            Self::Uplink => "uplink",
        }
    }
}

/// The scope of the rate's standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StdScope {
    /// Over one-second averages within a run.
    #[default]
    Window,
    /// Over runs: each run has its own constant rate.
    Run,
}

/// The RLC mode, which handles transport blocks that failed all HARQ transmissions (3GPP TS 36.322).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RlcMode {
    /// Acknowledged mode: the block is retransmitted by RLC.
    #[default]
    Acknowledged,
    /// Unacknowledged mode: the block and its packets are lost.
    Unacknowledged,
}

/// Discontinuous reception (DRX): after inactivity the phone listens only periodically (3GPP TS 36.321).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drx {
    /// Inactivity timer: DRX begins after this time without traffic.
    pub after: Duration,
    /// DRX cycle: the interval between the times at which the phone listens.
    pub cycle: Duration,
}

/// The settings of one direction. The defaults give pings of 21.2 ms with a standard deviation of
/// 3.5 ms over both directions, and the rate of a cell with good reception.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LteConfig {
    /// Mean rate of IP packets while the queue is not empty, in bits per second.
    pub bits_per_second: u64,
    /// Standard deviation of the rate, in bits per second.
    pub std_bits_per_second: u64,
    /// Scope of the standard deviation.
    pub std_scope: StdScope,
    /// Correlation time of the rate, at least 1 ms.
    pub tau: Duration,
    /// Probability that the first transmission of a block fails.
    pub block_error: f64,
    /// Probability that a retransmission fails.
    pub retry_error: f64,
    /// Maximum number of transmissions of a block, 1 to 8.
    pub tries: u32,
    /// RLC mode, for blocks whose transmissions all failed.
    pub rlc_mode: RlcMode,
    /// Scheduling request period, in milliseconds.
    pub request_period: u64,
    /// Time after its last block during which the phone needs no new request, in milliseconds.
    pub grant_hold: u64,
    /// Discontinuous reception, if enabled.
    pub drx: Option<Drx>,
    /// Queue limit in bytes.
    pub queue_bytes: u64,
    /// Probability that a packet is lost despite retransmissions.
    pub residual_loss: f64,
    /// One-way delay between the radio and the edge of the operator's network.
    pub core_delay: Duration,
}

impl Default for LteConfig {
    fn default() -> Self {
        Self {
            bits_per_second: 65_900_000,
            std_bits_per_second: 5_100_000,
            std_scope: StdScope::Window,
            tau: Duration::from_secs(1),
            block_error: 0.08,
            retry_error: 0.008,
            tries: 4,
            rlc_mode: RlcMode::Acknowledged,
            request_period: 5,
            grant_hold: 10,
            drx: None,
            queue_bytes: 1_000_000,
            residual_loss: 0.0009,
            core_delay: Duration::from_micros(2870),
        }
    }
}

impl LteConfig {
    /// Sampling period of the rate.
    pub(super) const SAMPLING: Duration = Duration::from_millis(10);

    /// Mean number of transmissions per block. Retransmissions replace new blocks.
    pub(super) fn mean_tries(&self) -> f64 {
        let mut transmissions = 1.0;
        let mut probability = self.block_error;
        for _ in 1..self.tries {
            transmissions += probability;
            probability *= self.retry_error;
        }
        transmissions
    }

    /// The rate of the radio, including the capacity for retransmissions.
    pub(super) fn radio_rate(&self, seed: Seed) -> OrnsteinUhlenbeck {
        let head_room = self.mean_tries();
        let mean = self.bits_per_second as f64 * head_room;
        let std = self.std_bits_per_second as f64 * head_room;
        let tau = self.tau.max(Duration::from_millis(1));
        let (mean, sigma) = match self.std_scope {
            StdScope::Window => (mean, std / window_share(tau.as_secs_f64()).sqrt()),
            StdScope::Run => {
                let draw = normal(&mut seed.of("mean of the run").rng());
                (mean + std * draw, 0.0)
            }
        };
        OrnsteinUhlenbeck::new(mean, sigma, tau, Self::SAMPLING, seed)
    }
}

/// The variance of one-second averages of a process with time constant `tau` in seconds, relative to
/// the variance of the process.
fn window_share(tau: f64) -> f64 {
    2.0 * tau * (1.0 - tau * (1.0 - libm::exp(-1.0 / tau)))
}

#[cfg(test)]
mod tests {
    use super::window_share;

    #[test]
    fn one_second_averages_have_the_computed_variance() {
        for (tau, sigma) in [(1.0, 5.95), (0.2, 9.01), (5.0, 5.27)] {
            let found = 5.1 / window_share(tau).sqrt();
            assert!((found - sigma).abs() < 0.01, "{tau}: {found}");
        }
    }
}
