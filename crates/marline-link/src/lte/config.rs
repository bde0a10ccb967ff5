//! What a radio cell is like, to one phone.

use std::time::Duration;

use crate::Seed;
use crate::process::OrnsteinUhlenbeck;
use crate::random::normal;

/// One direction of a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the base station to the phone.
    Downlink,
    /// From the phone to the base station.
    Uplink,
}

impl Direction {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Downlink => "downlink",
            Self::Uplink => "uplink",
        }
    }
}

/// What the standard deviation of the rate is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StdScope {
    /// About averages over a second, within a run.
    #[default]
    Window,
    /// About averages over runs: each has a rate of its own, which stays.
    Run,
}

/// What becomes of a block that failed at every try (3GPP TS 36.322).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RlcMode {
    /// Acknowledged: the receiver misses it, asks, and gets it.
    #[default]
    Acknowledged,
    /// Unacknowledged: it is lost, and its packets with it.
    Unacknowledged,
}

/// Discontinuous reception: a phone that hears nothing for a while listens only now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drx {
    /// After how long without traffic it begins.
    pub after: Duration,
    /// How far apart the moments are at which it listens then.
    pub cycle: Duration,
}

/// The settings of one direction; the defaults give pings of 21.2 ms with a standard deviation of
/// 3.5 ms over both, and the rate of a good cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LteConfig {
    /// Mean rate of IP packets with a queue that is never empty, in bits per second.
    pub bits_per_second: u64,
    /// Its standard deviation, in bits per second.
    pub std_bits_per_second: u64,
    /// What that is about.
    pub std_scope: StdScope,
    /// The time constant with which the rate forgets, at least a millisecond.
    pub tau: Duration,
    /// How likely a block fails at its first try.
    pub block_error: f64,
    /// How likely each later try fails.
    pub retry_error: f64,
    /// How often a block is tried: 1 to 8.
    pub tries: u32,
    /// What becomes of it then.
    pub rlc_mode: RlcMode,
    /// How far apart the phone's chances are to ask for a grant, in milliseconds.
    pub request_period: u64,
    /// For how many milliseconds after its last block the phone need not ask again.
    pub grant_hold: u64,
    /// Whether the phone sleeps.
    pub drx: Option<Drx>,
    /// Bytes that may wait for the radio.
    pub queue_bytes: u64,
    /// How likely a packet is lost in spite of all tries.
    pub residual_loss: f64,
    /// The way between the radio and the edge of the operator's network.
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
    /// How often the rate is sampled.
    const SAMPLING: Duration = Duration::from_millis(10);

    /// How often a block is sent on average. Tries beyond the first take the place of new blocks.
    pub(super) fn mean_tries(&self) -> f64 {
        let mut tried = 1.0;
        let mut chance = self.block_error;
        for _ in 1..self.tries {
            tried += chance;
            chance *= self.retry_error;
        }
        tried
    }

    /// The rate of the radio, with room for the tries beyond the first.
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

/// The variance of averages over one second of a process with time constant `tau` in seconds, as a
/// share of the variance of the process.
fn window_share(tau: f64) -> f64 {
    2.0 * tau * (1.0 - tau * (1.0 - libm::exp(-1.0 / tau)))
}

#[cfg(test)]
mod tests {
    use super::window_share;

    #[test]
    fn averages_vary_less_than_the_process() {
        for (tau, sigma) in [(1.0, 5.95), (0.2, 9.01), (5.0, 5.27)] {
            let found = 5.1 / window_share(tau).sqrt();
            assert!((found - sigma).abs() < 0.01, "{tau}: {found}");
        }
    }
}
