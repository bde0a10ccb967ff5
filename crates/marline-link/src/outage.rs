//! Times in which nothing passes.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;

use crate::exit_queue::Out;
use crate::random::unit;
use crate::{DropReason, Exit, Guard, Link, Packet, Seed, Time};

#[cfg(test)]
mod tests;

/// A link that is switched off at times; what comes then is lost.
#[derive(Clone, Debug)]
pub struct Outages {
    /// From, to; in order, none overlapping another.
    windows: Vec<(Time, Time)>,
    next: usize,
}

impl Outages {
    /// Off from the first moment of each window up to, not including, the second.
    pub fn new(mut windows: Vec<(Time, Time)>) -> Self {
        windows.sort_unstable();
        Self { windows, next: 0 }
    }
}

impl Guard for Outages {
    fn inspect<B>(&mut self, now: Time, _packet: &mut Packet<B>) -> Option<DropReason> {
        while self
            .windows
            .get(self.next)
            .is_some_and(|window| window.1 <= now)
        {
            self.next += 1;
        }
        let (from, _) = *self.windows.get(self.next)?;
        (from <= now).then_some(DropReason::LinkDown)
    }
}

/// A link that pauses now and then, as a radio does that looks for better neighbors: what comes in
/// a pause waits, and leaves at its end all at once.
///
/// When the pauses are depends on the seed alone, not on the packets. What waits is not counted as
/// queued.
pub struct Suspensions<B> {
    schedule: Schedule,
    rng: Pcg64Mcg,
    /// The present pause, or the next.
    pause: (Time, Time),
    out: Out<B>,
}

/// How often a link pauses, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// From the start of one pause to the start of the next; the first is one such time after the
    /// epoch. Longer than the longest pause.
    pub every: Duration,
    /// The shortest pause.
    pub shortest: Duration,
    /// The longest pause; any length between is equally likely.
    pub longest: Duration,
}

impl<B> Suspensions<B> {
    /// Pauses as `schedule` says.
    pub fn new(schedule: Schedule, seed: Seed) -> Self {
        let mut suspensions = Self {
            schedule,
            rng: seed.rng(),
            pause: (Time::ZERO, Time::ZERO),
            out: Out::new(),
        };
        suspensions.plan();
        suspensions
    }

    /// Plans the pause after the present one.
    fn plan(&mut self) {
        let Schedule {
            every,
            shortest,
            longest,
        } = self.schedule;
        let range = longest.saturating_sub(shortest).as_nanos() as f64;
        let length = shortest + Duration::from_nanos((range * unit(&mut self.rng)) as u64);
        // Never without a gap, else time would not move on.
        let from = self.pause.0 + every.max(longest).max(Duration::from_micros(1));
        self.pause = (from, from + length);
    }
}

impl<B: Send> Link<B> for Suspensions<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        while self.pause.1 <= now {
            self.plan();
        }
        let (from, to) = self.pause;
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
