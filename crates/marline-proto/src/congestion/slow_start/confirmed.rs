//! Slow start that distinguishes jitter from a queue: a risen round-trip time ends it only once the delivery rate has
//! stopped growing as well.

use std::sync::Arc;

use super::{HybridConfig, Round, SlowStartDecision, SlowStartExit, SlowStartSample};
use crate::settings::{Domain, Entry, Field, Make, Settings, Spec};

/// Its name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn SlowStartExit>, ConfirmedConfig> = Entry {
    name: "confirmed",
    about: "Leave when whole rounds are late and deliver no faster than the ones before",
    parameters: ConfirmedConfig::SETTINGS,
    default: ConfirmedConfig::default,
    make: |config| Arc::new(move || Box::new(ConfirmedExit::new(config))),
};

/// The settings of [`ConfirmedExit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfirmedConfig {
    /// The delay criterion for suspected rounds.
    pub rise: HybridConfig,
    /// A round whose delivery rate is at least this multiple of the highest before has found room: its rise is jitter.
    pub growth: f64,
    /// Suspected rounds in a row, without growth of the rate, that end slow start.
    pub rounds: u32,
    /// Divisor of window growth while a round is suspected; 1 does not slow it.
    pub slowing: u64,
}

impl Default for ConfirmedConfig {
    fn default() -> Self {
        Self {
            rise: HybridConfig {
                max_rise: None,
                ..HybridConfig::default()
            },
            growth: 1.1,
            rounds: 2,
            slowing: 4,
        }
    }
}

impl ConfirmedConfig {
    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "factor",
            HybridConfig::FACTOR,
            "Rise of the round-trip time that makes a round suspected, as a part of the smallest one",
            |c: &mut Self| &mut c.rise.factor,
        ),
        &Field::new(
            "min_rise",
            HybridConfig::RISE,
            "The least rise that makes a round suspected",
            |c: &mut Self| &mut c.rise.min_rise,
        ),
        &Field::new(
            "max_rise",
            HybridConfig::RISE.or("none"),
            "A rise of this much makes a round suspected, whatever the factor says",
            |c: &mut Self| &mut c.rise.max_rise,
        ),
        &Field::new(
            "min_samples",
            HybridConfig::SAMPLES,
            "Samples that a round needs before it is judged",
            |c: &mut Self| &mut c.rise.min_samples,
        ),
        &Field::new(
            "low_window",
            HybridConfig::LOW_WINDOW,
            "Windows of fewer full datagrams than this stay in slow start",
            |c: &mut Self| &mut c.rise.low_window,
        ),
        &Field::new(
            "growth",
            Domain::number(1.0, 2.0),
            "A round that delivers this many times as fast as any before is not suspected",
            |c: &mut Self| &mut c.growth,
        ),
        &Field::new(
            "rounds",
            Domain::integer(1, 100),
            "Suspected rounds in a row that end slow start",
            |c: &mut Self| &mut c.rounds,
        ),
        &Field::new(
            "slowing",
            Domain::integer(1, 100),
            "The window grows by one part in this many while a round is suspected; 1 is as always",
            |c: &mut Self| &mut c.slowing,
        ),
    ];
}

/// Ends slow start when there is a standing queue: all round-trip times of a round have risen, though the round
/// delivered no faster than one with half the window.
///
/// A radio delays packets by milliseconds when others send or frames fail, and a whole round may be late without a
/// queue; but while the window is less than the path holds, each round delivers nearly twice as fast as the previous
/// one. At a full bottleneck it cannot. A rise alone is therefore a suspicion, during which the window grows slower,
/// like in the conservative slow start of HyStart++ (RFC 9406), and the rate of the whole round confirms or dismisses
/// it. The test of the rate is that of BBR's startup. A round without a rate sample is judged by delay alone.
#[derive(Debug, Default)]
pub struct ConfirmedExit {
    config: ConfirmedConfig,
    round: RoundState,
    /// The highest delivery rate of earlier rounds, in bytes per second.
    best_rate: u64,
    /// Suspected rounds in a row that delivered no faster.
    confirmations: u32,
}

/// The measurements of the present round.
#[derive(Clone, Copy, Debug, Default)]
struct RoundState {
    /// The smallest round-trip times of the path and of the round, and the number of samples.
    seen: Option<Round>,
    /// The highest delivery rate, in bytes per second.
    rate: Option<u64>,
}

impl ConfirmedExit {
    /// With settings other than the default.
    pub fn new(config: ConfirmedConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Whether all round-trip times of the present round have risen, so far.
    fn is_suspected(&self) -> bool {
        let seen = self.round.seen;
        seen.is_some_and(|round| self.config.rise.exits(&round))
    }

    /// Judges the round at its end.
    fn judge(&mut self) {
        let rate = self.round.rate;
        let grew =
            rate.is_some_and(|rate| rate as f64 >= self.best_rate as f64 * self.config.growth);
        self.confirmations = match self.is_suspected() && !grew {
            true => self.confirmations.saturating_add(1),
            false => 0,
        };
        self.best_rate = self.best_rate.max(rate.unwrap_or(0));
    }
}

impl SlowStartExit for ConfirmedExit {
    fn on_round_start(&mut self) {
        self.judge();
        self.round = RoundState::default();
    }

    fn on_ack(&mut self, sample: &SlowStartSample) -> SlowStartDecision {
        self.round.rate = self.round.rate.max(sample.rate);
        if let Some(rtt) = sample.rtt {
            let before = self.round.seen;
            self.round.seen = Some(Round {
                session_min: sample.min_rtt,
                round_min: before.map_or(rtt, |round| round.round_min.min(rtt)),
                samples: before.map_or(1, |round| round.samples.saturating_add(1)),
                window_packets: sample.window / sample.max_datagram_size.max(1),
            });
        }
        if self.confirmations >= self.config.rounds.max(1) {
            SlowStartDecision::Exit
        } else if self.confirmations > 0 || self.is_suspected() {
            SlowStartDecision::Slow(self.config.slowing.max(1))
        } else {
            SlowStartDecision::Stay
        }
    }

    fn reset(&mut self) {
        *self = Self::new(self.config);
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(&self.config)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MTU: u64 = 1200;
    const MIN: Duration = Duration::from_millis(40);

    /// One round of eight acknowledgments at `rtt` milliseconds, which delivered `rate`; returns the last decision.
    fn round(exit: &mut ConfirmedExit, rtt: u64, rate: Option<u64>) -> SlowStartDecision {
        exit.on_round_start();
        let decisions = (0..8).map(|_| {
            exit.on_ack(&SlowStartSample {
                rtt: Some(Duration::from_millis(rtt)),
                min_rtt: MIN,
                window: 40 * MTU,
                max_datagram_size: MTU,
                rate,
            })
        });
        decisions.last().expect("eight")
    }

    fn of_one_round() -> ConfirmedExit {
        ConfirmedExit::new(ConfirmedConfig {
            growth: 1.25,
            rounds: 1,
            ..ConfirmedConfig::default()
        })
    }

    #[test]
    fn a_late_round_that_delivers_faster_is_jitter() {
        let mut exit = of_one_round();
        assert_eq!(round(&mut exit, 40, Some(1000)), SlowStartDecision::Stay);
        assert_eq!(round(&mut exit, 60, Some(1900)), SlowStartDecision::Slow(4));
        assert_eq!(round(&mut exit, 42, Some(3500)), SlowStartDecision::Stay);
        assert_eq!(
            round(&mut exit, 60, Some(4300)),
            SlowStartDecision::Slow(4),
            "suspected"
        );
        assert_eq!(
            round(&mut exit, 40, Some(9000)),
            SlowStartDecision::Exit,
            "3500 * 1.25 > 4300"
        );
    }

    #[test]
    fn a_late_round_that_delivers_no_faster_is_a_queue() {
        let mut exit = of_one_round();
        round(&mut exit, 40, Some(1000));
        assert_eq!(round(&mut exit, 50, Some(1100)), SlowStartDecision::Slow(4));
        assert_eq!(round(&mut exit, 50, Some(1100)), SlowStartDecision::Exit);
    }

    #[test]
    fn a_round_that_delivers_no_faster_is_no_queue_without_a_rise() {
        let mut exit = of_one_round();
        for _ in 0..20 {
            assert_eq!(round(&mut exit, 44, Some(1000)), SlowStartDecision::Stay);
        }
    }

    #[test]
    fn without_rates_the_delay_of_a_whole_round_decides() {
        let mut exit = of_one_round();
        assert_eq!(round(&mut exit, 50, None), SlowStartDecision::Slow(4));
        assert_eq!(round(&mut exit, 40, None), SlowStartDecision::Exit);
    }

    #[test]
    fn more_rounds_can_be_asked_to_confirm_and_one_that_is_in_time_dismisses_them() {
        let mut exit = ConfirmedExit::new(ConfirmedConfig {
            slowing: 1,
            ..ConfirmedConfig::default()
        });
        round(&mut exit, 50, Some(1000));
        round(&mut exit, 50, Some(1000));
        assert_eq!(round(&mut exit, 40, Some(1000)), SlowStartDecision::Slow(1));
        round(&mut exit, 50, Some(1000));
        round(&mut exit, 50, Some(1000));
        assert_eq!(round(&mut exit, 50, Some(1000)), SlowStartDecision::Exit);
    }

    #[test]
    fn nothing_is_left_of_earlier_rounds_when_slow_start_begins_anew() {
        let mut exit = of_one_round();
        round(&mut exit, 50, Some(1000));
        exit.on_round_start();
        exit.reset();
        assert_eq!(round(&mut exit, 40, Some(10)), SlowStartDecision::Stay);
    }
}
