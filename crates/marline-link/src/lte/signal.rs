//! The SINR for the rate of a radio.

use super::{Direction, LteConfig};
use crate::process::{OrnsteinUhlenbeck, RateProcess};
use crate::{Seed, Time};

/// Bandwidth of the cell's carrier, the widest of LTE, in Hz.
const CARRIER_HZ: f64 = 20e6;

/// Fraction of Shannon's bound that a downlink reaches (3GPP TR 36.942, annex A.2).
const ATTENUATION: f64 = 0.6;

/// Range of the SINR in dB: below it nothing is transmitted (3GPP TR 36.942, annex A.2), and above it
/// phones do not measure.
const MIN_DB: f64 = -10.0;
const MAX_DB: f64 = 30.0;

/// The SINR over time of a radio created by [`Lte::new`](super::Lte::new) with equal arguments: the value at which a
/// carrier of 20 MHz has the radio's rate, with 0.6 of Shannon's bound, between -10 and 30 dB.
#[derive(Clone, Debug)]
pub struct LteSignal {
    rate: OrnsteinUhlenbeck,
    /// Rates since the epoch in bits per second, one per sampling period.
    rates: Vec<u64>,
}

impl LteSignal {
    /// The signal of one direction.
    pub fn new(config: &LteConfig, direction: Direction, seed: Seed) -> Self {
        Self {
            rate: config.radio_rate(seed.of(direction.name())),
            rates: Vec::new(),
        }
    }

    /// The SINR at `now` in dB. The first query of a time takes a time proportional to the distance from the last
    /// queried time.
    pub fn sinr_db(&mut self, now: Time) -> f64 {
        let period = LteConfig::SAMPLING.as_nanos() as u64;
        let index = (now.as_nanos() / period) as usize;
        while self.rates.len() <= index {
            let at = Time::from_nanos(self.rates.len() as u64 * period);
            self.rates.push(self.rate.at(at).bits_per_second);
        }
        sinr_db(self.rates[index] as f64)
    }
}

fn sinr_db(bits_per_second: f64) -> f64 {
    let efficiency = bits_per_second / (ATTENUATION * CARRIER_HZ);
    let ratio = libm::exp2(efficiency) - 1.0;
    (10.0 * libm::log10(ratio)).clamp(MIN_DB, MAX_DB)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lte::Lte;
    use crate::{Link, Packet};

    #[test]
    fn sinr_is_that_of_the_attenuated_bound() {
        // 0.6 * 20 MHz * log2(1 + 1).
        assert!(sinr_db(12e6).abs() < 1e-9);
        // 0.6 * 20 MHz * log2(1 + 100).
        assert!((sinr_db(12e6 * 101_f64.log2()) - 20.0).abs() < 1e-9);
        assert_eq!(sinr_db(0.0), MIN_DB);
        assert_eq!(sinr_db(1e9), MAX_DB);
    }

    #[test]
    fn times_may_be_asked_for_in_any_order() {
        let new = || LteSignal::new(&LteConfig::default(), Direction::Downlink, Seed::new(7));
        let mut signal = new();
        let at = |second: u64| Time::ZERO + Duration::from_secs(second);
        let late = signal.sinr_db(at(9));
        assert_ne!(signal.sinr_db(at(2)), late);
        assert_eq!(signal.sinr_db(at(2)), new().sinr_db(at(2)));
        assert_eq!(signal.sinr_db(at(9)), late);
    }

    /// The link's rate equals the rate for its SINR, within the resolution of 1,500-byte packets in half a second.
    #[test]
    fn the_signal_follows_the_rate_of_the_link() {
        let config = LteConfig {
            bits_per_second: 40_000_000,
            std_bits_per_second: 12_000_000,
            tau: Duration::from_secs(5),
            block_error: 0.0,
            retry_error: 0.0,
            residual_loss: 0.0,
            ..LteConfig::default()
        };
        let seed = Seed::new(3);
        let mut link = Lte::new(&config, Direction::Downlink, seed);
        let mut signal = LteSignal::new(&config, Direction::Downlink, seed);
        let mut windows = [0_u64; 40];
        for _ in 0..200 {
            link.push(Time::ZERO, Packet::new(1500, ()));
        }
        'sent: loop {
            let now = link.next_event().unwrap();
            while let Some(exit) = link.pop(now) {
                link.push(now, Packet::new(1500, ()));
                let left = exit.at.as_nanos() - config.core_delay.as_nanos() as u64 - 2_500_000;
                match windows.get_mut((left / 500_000_000) as usize) {
                    Some(window) => *window += 1500 * 8,
                    None => break 'sent,
                }
            }
        }
        for (window, bits) in windows.iter().enumerate() {
            let means = (0..50).map(|step| {
                let at = Duration::from_millis(500 * window as u64 + 10 * step);
                let ratio = 10_f64.powf(signal.sinr_db(Time::ZERO + at) / 10.0);
                ATTENUATION * CARRIER_HZ * (1.0 + ratio).log2() / 50.0
            });
            let (stated, carried) = (means.sum::<f64>(), *bits as f64 / 0.5);
            assert!(
                (stated - carried).abs() < 0.02 * stated,
                "{window}: {stated} {carried}"
            );
        }
    }
}
