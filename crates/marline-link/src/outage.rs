//! Outages and pauses of a link.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use crate::exit_queue::ExitQueue;
use crate::random::uniform;
use crate::{DropReason, Exit, Filter, Link, Packet, Seed, Time};

#[cfg(test)]
mod tests;

/// A period of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period {
    /// Start of the period.
    pub from: Time,
    /// End of the period, exclusive.
    pub to: Time,
}

/// A link that is down during given periods and drops packets that arrive then.
#[derive(Clone, Debug)]
pub struct Outages {
    /// Periods in time order, without overlaps.
    periods: Vec<Period>,
    next: usize,
}

impl Outages {
    /// A link that is down during each of `periods`, which must not overlap.
    pub fn new(mut periods: Vec<Period>) -> Self {
        periods.sort_unstable();
        Self { periods, next: 0 }
    }
}

impl Filter for Outages {
    fn inspect<B>(&mut self, now: Time, _packet: &mut Packet<B>) -> Option<DropReason> {
        while self
            .periods
            .get(self.next)
            .is_some_and(|period| period.to <= now)
        {
            self.next += 1;
        }
        let period = self.periods.get(self.next)?;
        (period.from <= now).then_some(DropReason::LinkDown)
    }
}

/// A link that pauses periodically, as a radio that scans for other cells: packets that arrive during
/// a pause leave together when it ends.
///
/// The pauses depend only on the seed, not on the packets. Waiting packets do not count as queued.
pub struct Suspensions<B> {
    schedule: Schedule,
    rng: Pcg64Mcg,
    /// The current or next pause.
    pause: Period,
    out: ExitQueue<B>,
}

/// The interval and length of a link's pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// Interval between the starts of pauses, and from the epoch to the first. Longer than `longest`.
    pub every: Duration,
    /// Minimum length of a pause.
    pub shortest: Duration,
    /// Maximum length of a pause; lengths are uniformly distributed.
    pub longest: Duration,
}

impl<B> Suspensions<B> {
    /// A link that pauses according to `schedule`.
    pub fn new(schedule: Schedule, seed: Seed) -> Self {
        let mut suspensions = Self {
            schedule,
            rng: seed.rng(),
            pause: Period {
                from: Time::ZERO,
                to: Time::ZERO,
            },
            out: ExitQueue::new(),
        };
        suspensions.plan();
        suspensions
    }

    /// Draws the next pause.
    fn plan(&mut self) {
        let Schedule {
            every,
            shortest,
            longest,
        } = self.schedule;
        let range = longest.saturating_sub(shortest).as_nanos() as f64;
        let length = shortest + Duration::from_nanos((range * uniform(&mut self.rng)) as u64);
        // At least a microsecond later, so that there is always progress.
        let from = self.pause.from + every.max(longest).max(Duration::from_micros(1));
        self.pause = Period {
            from,
            to: from + length,
        };
    }
}

impl<B: Send> Link<B> for Suspensions<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        while self.pause.to <= now {
            self.plan();
        }
        let Period { from, to } = self.pause;
        let at = if now < from { now } else { to };
        self.out.push(Exit::arrived(at, packet));
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.out.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.out.next_event()
    }
}
