//! HyStart++ (RFC 9406): on a rise of the round-trip time grow slower for some rounds, then exit.

use std::sync::Arc;
use std::time::Duration;

use super::{SlowStartDecision, SlowStartExit, SlowStartSample};
use crate::settings::{Entry, Make};

/// Its name in settings.
pub(super) const ENTRY: Entry<Make<dyn SlowStartExit>, ()> = Entry::plain(
    "hystart++",
    "On a rise of the round-trip time grow slower for some rounds, then leave (RFC 9406)",
    |()| Arc::new(|| Box::new(HyStartPp::default())),
);

/// Bounds of the rise that counts (RFC 9406, section 4.3).
const MIN_RISE: Duration = Duration::from_millis(4);
const MAX_RISE: Duration = Duration::from_millis(16);

/// The rise, as a part of the last round's smallest round-trip time.
const RISE_DIVISOR: u32 = 8;

/// Samples that a round needs before it is judged.
const MIN_SAMPLES: u32 = 8;

/// Divisor of growth in conservative slow start.
const GROWTH_DIVISOR: u64 = 4;

/// Rounds of conservative slow start before slow start ends.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Compares each round with the previous one, and grows slower for some rounds before it ends slow
/// start.
#[derive(Debug, Default)]
pub struct HyStartPp {
    last_min: Option<Duration>,
    round_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The round-trip time that began it; a smaller one ends it again.
    baseline: Duration,
    rounds: u32,
}

impl SlowStartExit for HyStartPp {
    fn on_round_start(&mut self) {
        self.last_min = self.round_min.take();
        self.samples = 0;
        if let Some(conservative) = &mut self.conservative {
            conservative.rounds += 1;
        }
    }

    fn on_ack(&mut self, sample: &SlowStartSample) -> SlowStartDecision {
        if let Some(rtt) = sample.rtt {
            let round_min = self.round_min.map_or(rtt, |min| min.min(rtt));
            self.round_min = Some(round_min);
            self.samples = self.samples.saturating_add(1);
            if self.samples >= MIN_SAMPLES {
                self.judge(round_min);
            }
        }
        match self.conservative {
            None => SlowStartDecision::Stay,
            Some(Conservative { rounds, .. }) if rounds >= CONSERVATIVE_ROUNDS => {
                SlowStartDecision::Exit
            }
            Some(_) => SlowStartDecision::Slow(GROWTH_DIVISOR),
        }
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}

impl HyStartPp {
    fn judge(&mut self, round_min: Duration) {
        if let Some(conservative) = self.conservative {
            if round_min < conservative.baseline {
                self.conservative = None;
            }
        } else if let Some(last_min) = self.last_min {
            let rise = (last_min / RISE_DIVISOR).clamp(MIN_RISE, MAX_RISE);
            if round_min >= last_min + rise {
                self.conservative = Some(Conservative {
                    baseline: round_min,
                    rounds: 0,
                });
            }
        }
    }
}
