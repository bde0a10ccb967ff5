//! A wired link, small enough to be checked by eye: rate and buffer, then loss, then delay.

use std::collections::VecDeque;
use std::time::Duration;

use marline_link::{DropReason, Exit, Link, Packet, Seed, Time};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    /// 0 for no limit.
    pub(crate) bits_per_second: u64,
    pub(crate) buffer: Duration,
    pub(crate) loss: f64,
    pub(crate) delay: Duration,
}

impl Spec {
    pub(crate) const fn delay(millis: u64) -> Self {
        Self {
            bits_per_second: 0,
            buffer: Duration::MAX,
            loss: 0.0,
            delay: Duration::from_millis(millis),
        }
    }
}

pub(crate) struct Wire<B> {
    spec: Spec,
    rng: Pcg64Mcg,
    free: Time,
    arriving: VecDeque<Exit<B>>,
    dropped: VecDeque<Exit<B>>,
}

impl<B> Wire<B> {
    pub(crate) fn new(spec: Spec, seed: Seed) -> Self {
        Self {
            spec,
            rng: seed.rng(),
            free: Time::ZERO,
            arriving: VecDeque::new(),
            dropped: VecDeque::new(),
        }
    }
}

impl<B: Send> Link<B> for Wire<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        let start = self.free.max(now);
        if start.since(now) > self.spec.buffer {
            let exit = Exit::dropped(now, packet, DropReason::QueueFull);
            return self.dropped.push_back(exit);
        }
        let bits = u64::from(packet.size) * 8 * 1_000_000_000;
        let nanos = bits.checked_div(self.spec.bits_per_second).unwrap_or(0);
        self.free = start + Duration::from_nanos(nanos);
        if self.rng.random_bool(self.spec.loss) {
            let exit = Exit::dropped(self.free, packet, DropReason::Loss);
            return self.dropped.push_back(exit);
        }
        self.arriving
            .push_back(Exit::arrived(self.free + self.spec.delay, packet));
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        let due = |queue: &VecDeque<Exit<B>>| queue.front().map_or(Time::MAX, |exit| exit.at);
        let (arriving, dropped) = (due(&self.arriving), due(&self.dropped));
        if arriving.min(dropped) > now {
            None
        } else if dropped <= arriving {
            self.dropped.pop_front()
        } else {
            self.arriving.pop_front()
        }
    }

    fn next_event(&self) -> Option<Time> {
        let fronts = [self.arriving.front(), self.dropped.front()];
        fronts.into_iter().flatten().map(|exit| exit.at).min()
    }
}
