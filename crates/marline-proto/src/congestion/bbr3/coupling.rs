//! Paths of one connection that share a bottleneck. Not of the draft.
//!
//! Each path of a connection has a controller, and takes the share of one flow. Where two of them share a bottleneck, the
//! connection would take two (RFC 6356, goal 2). Such paths share its queue: the queueing delay rises and falls on both at the same
//! time and by the same amount, as in RFC 8382, section 3. Queues of different bottlenecks do not.
//!
//! Controllers of one connection publish their recent queueing delay. Each compares the queues of the others with its own, by twice
//! their covariance over the sum of their variances: 1 for one queue, 0 for unrelated queues or if only one varies. Separate paths
//! that probe at the same times have similar queues as well, so both have to see cross traffic, which each of two paths at one
//! bottleneck is to the other. Once [`EVIDENCE`] shows one queue, the path with the larger bandwidth continues as the connection's
//! only flow at that bottleneck, from half of its bandwidth, and the others *rest*: they send one [`RESTING_PART`]th of its rate,
//! which suffices for further comparison, and keep their model. A path that rests by mistake soon differs, since its own queue then
//! stays empty; the next time it requires longer evidence.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{Bbr3, Bbr3Config, State};
use crate::Instant;
use crate::congestion::{Controller, ControllerConfig, ControllerFactory, Coordinated};
use crate::limits::COUPLED_PATHS;

/// Samples older than this weigh 1/e of a new one.
const MEMORY: Duration = Duration::from_secs(3);

/// The shortest time between two samples.
const SAMPLE_PAUSE: Duration = Duration::from_millis(10);

/// Time without samples of both paths after which their comparison restarts.
const LONGEST_GAP: Duration = Duration::from_secs(5);

/// Largest age of a sample of the path that sends for resting ones: an older one means that it has failed, or has nothing to send.
const LONGEST_SILENCE: Duration = Duration::from_millis(250);

/// Time for which two queues are compared before they can be considered one.
const EVIDENCE: Duration = Duration::from_secs(2);

/// Similarity above which two queues are considered one.
const SAME: f64 = 0.6;

/// Similarity below which they are considered different.
const DIFFERENT: f64 = 0.2;

/// Smallest standard deviation of queues that can be compared, in seconds.
const MIN_DEVIATION: f64 = 0.0005;

/// Weight of a new sample in the smoothed queueing delay of a path: packets of different paths do not meet the same instant of a
/// queue that changes with every packet.
const SMOOTHING: f64 = 0.125;

/// Rounds after which the queue of startup is considered drained, and any left to be that of other flows.
const DRAIN_ROUNDS: u64 = 8;

/// Ratio of the other path's rate to that of a resting one.
const RESTING_PART: u64 = 32;

/// Smallest rate of a resting path, in bytes per second: a packet each 50 ms.
const MIN_RESTING_RATE: u64 = 24_000;

/// Mistakes after which the required evidence grows no more.
const MAX_MISTAKES: u32 = 4;

/// The controllers of the paths of one connection: at most 16 are coupled.
#[derive(Clone, Debug)]
pub(super) struct CoupledPaths {
    config: Bbr3Config,
    slots: Arc<[Slot; COUPLED_PATHS]>,
}

/// The state of a path that the others see. One thread drives the connection; atomics allow moving it to another.
#[derive(Debug, Default)]
struct Slot {
    is_taken: AtomicBool,
    is_resting: AtomicBool,
    /// Whether its queue has cross traffic.
    has_others: AtomicBool,
    /// Whether another path has just begun to rest for this one.
    is_relied_on: AtomicBool,
    /// The smoothed queueing delay, in nanoseconds.
    queue: AtomicU64,
    /// When it was sampled, in nanoseconds since the epoch; 0 is never.
    sampled_at: AtomicU64,
    /// Bytes per second.
    bandwidth: AtomicU64,
}

impl Slot {
    /// Whether the path sends at its own rate at `nanos`.
    fn goes_on(&self, nanos: u64) -> bool {
        let heard_at = self.sampled_at.load(Ordering::Relaxed);
        heard_at > 0
            && nanos.saturating_sub(heard_at) < nanos_of(LONGEST_SILENCE)
            && !self.is_resting.load(Ordering::Relaxed)
    }
}

impl CoupledPaths {
    pub(super) fn new(config: Bbr3Config) -> Self {
        Self {
            config,
            slots: Arc::default(),
        }
    }
}

impl ControllerFactory for CoupledPaths {
    fn build(&self, config: ControllerConfig) -> Box<dyn Controller> {
        let is_free = |slot: &Slot| !slot.is_taken.swap(true, Ordering::Relaxed);
        let place = self.slots.iter().position(is_free);
        let mut bbr = Bbr3::with_settings(&config, self.config);
        bbr.coupling = place.map(|place| {
            Box::new(Coupling {
                slots: Arc::clone(&self.slots),
                place,
                pairs: [Similarity::default(); COUPLED_PATHS],
                sampled_at: None,
                queue: None,
                rests_for: None,
                rested_for: None,
                mistakes: 0,
            })
        });
        Box::new(bbr)
    }

    fn of_connection(&self) -> Option<Arc<dyn ControllerFactory>> {
        Some(Arc::new(Self::new(self.config)))
    }
}

/// The similarity of two queues: moments of both, each sample weighted by the time since the previous one.
#[derive(Clone, Copy, Debug, Default)]
struct Similarity {
    /// Time for which they have been compared.
    compared_for: Duration,
    own_mean: f64,
    other_mean: f64,
    own_variance: f64,
    other_variance: f64,
    covariance: f64,
}

impl Similarity {
    /// Adds queueing delays of `own` and `other` seconds, `elapsed` after the previous ones.
    fn add(&mut self, elapsed: Duration, own: f64, other: f64) {
        if self.compared_for.is_zero() {
            (self.own_mean, self.other_mean) = (own, other);
        }
        self.compared_for += elapsed;
        let memory = self.compared_for.min(MEMORY).as_secs_f64().max(1e-9);
        let weight = (elapsed.as_secs_f64() / memory).min(1.0);
        let (own_off, other_off) = (own - self.own_mean, other - self.other_mean);
        self.own_mean += weight * own_off;
        self.other_mean += weight * other_off;
        let keep = 1.0 - weight;
        let update = |moment: &mut f64, product: f64| *moment = keep * (*moment + weight * product);
        update(&mut self.own_variance, own_off * own_off);
        update(&mut self.other_variance, other_off * other_off);
        update(&mut self.covariance, own_off * other_off);
    }

    /// From -1 to 1; `None` if the queues vary too little.
    fn get(&self) -> Option<f64> {
        let variances = self.own_variance + self.other_variance;
        let is_enough = variances > 2.0 * MIN_DEVIATION * MIN_DEVIATION;
        is_enough.then(|| 2.0 * self.covariance / variances)
    }
}

/// A path among those of its connection.
#[derive(Debug)]
pub(super) struct Coupling {
    slots: Arc<[Slot; COUPLED_PATHS]>,
    place: usize,
    /// The comparison with the queue of each other path.
    pairs: [Similarity; COUPLED_PATHS],
    sampled_at: Option<Instant>,
    /// The smoothed queueing delay, in seconds.
    queue: Option<f64>,
    /// The path that sends for this one.
    rests_for: Option<usize>,
    /// The last path for which this one rested, unless that was a mistake: it has reduced its bandwidth once.
    rested_for: Option<usize>,
    /// Times that this path rested for one that does not share its queue.
    mistakes: u32,
}

impl Coupling {
    /// The largest rate of this path, in bytes per second, if it rests.
    pub(super) fn resting_rate(&self) -> Option<u64> {
        let other = &self.slots[self.rests_for?];
        let part = other.bandwidth.load(Ordering::Relaxed) / RESTING_PART;
        Some(part.max(MIN_RESTING_RATE))
    }

    /// A packet was queued for `queue`; the path delivers `bandwidth` bytes per second, and `has_others` is whether there is cross
    /// traffic.
    fn on_sample(&mut self, now: Instant, queue: Duration, bandwidth: u64, has_others: bool) {
        let elapsed = now.saturating_since(self.sampled_at.unwrap_or(now));
        if self.sampled_at.is_some() && elapsed < SAMPLE_PAUSE {
            return;
        }
        self.sampled_at = Some(now);
        let waited = queue.as_secs_f64();
        let before = *self.queue.get_or_insert(waited);
        let queue = before + SMOOTHING * (waited - before);
        self.queue = Some(queue);
        let nanos = nanos_of(now.saturating_since(Instant::EPOCH)).max(1);
        let own = &self.slots[self.place];
        own.queue.store((queue * 1e9) as u64, Ordering::Relaxed);
        own.sampled_at.store(nanos, Ordering::Relaxed);
        own.bandwidth.store(bandwidth, Ordering::Relaxed);
        own.has_others.store(has_others, Ordering::Relaxed);
        for place in (0..COUPLED_PATHS).filter(|place| *place != self.place) {
            let other = &self.slots[place];
            let age = nanos.saturating_sub(other.sampled_at.load(Ordering::Relaxed));
            let is_known = other.sampled_at.load(Ordering::Relaxed) > 0;
            if !is_known || age > nanos_of(LONGEST_GAP) || elapsed > LONGEST_GAP {
                self.pairs[place] = Similarity::default();
                continue;
            }
            let theirs = other.queue.load(Ordering::Relaxed) as f64 / 1e9;
            self.pairs[place].add(elapsed, queue, theirs);
        }
        self.decide(nanos, bandwidth);
    }

    /// Whether another path has begun to rest for this one since the last call.
    fn takes_over(&self) -> bool {
        self.slots[self.place]
            .is_relied_on
            .swap(false, Ordering::Relaxed)
    }

    fn decide(&mut self, nanos: u64, bandwidth: u64) {
        if let Some(other) = self.rests_for {
            let pair = &self.pairs[other];
            let goes_on = self.slots[other].goes_on(nanos);
            let differs = pair.get().is_some_and(|similarity| similarity < DIFFERENT);
            if differs {
                self.mistakes = (self.mistakes + 1).min(MAX_MISTAKES);
                self.pairs[other] = Similarity::default();
                self.rested_for = None;
            }
            if differs || !goes_on {
                self.rest(None);
            }
            return;
        }
        let evidence = EVIDENCE * (1 << self.mistakes);
        let place = self.place;
        let is_better = |other: usize| {
            let theirs = self.slots[other].bandwidth.load(Ordering::Relaxed);
            (theirs, place) > (bandwidth, other)
        };
        let is_one = |other: &usize| {
            let pair = &self.pairs[*other];
            pair.compared_for >= evidence
                && pair.get().is_some_and(|similarity| similarity > SAME)
                && self.slots[*other].goes_on(nanos)
                && is_better(*other)
        };
        let has_others = |place: usize| self.slots[place].has_others.load(Ordering::Relaxed);
        let is_beside = |other: &usize| has_others(place) && has_others(*other);
        let found = (0..COUPLED_PATHS).find(|other| is_beside(other) && is_one(other));
        if let Some(other) = found {
            if self.rested_for != found {
                self.slots[other]
                    .is_relied_on
                    .store(true, Ordering::Relaxed);
                self.rested_for = found;
            }
            self.rest(found);
        }
    }

    fn rest(&mut self, rests_for: Option<usize>) {
        self.rests_for = rests_for;
        let own = &self.slots[self.place];
        own.is_resting.store(rests_for.is_some(), Ordering::Relaxed);
    }
}

impl Drop for Coupling {
    fn drop(&mut self) {
        let slot = &self.slots[self.place];
        slot.sampled_at.store(0, Ordering::Relaxed);
        slot.is_resting.store(false, Ordering::Relaxed);
        slot.is_taken.store(false, Ordering::Relaxed);
    }
}

fn nanos_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Bbr3 {
    /// Compares the queue of this path with those of the others, once the queue of startup is drained. If one of them begins to rest, two
    /// flows have shared the bottleneck, perhaps with others which they kept from their share: this one goes back to half of its bandwidth,
    /// and probes from there. The losses that it took for chance were in the queue that the other path filled.
    pub(super) fn compare_queues(&mut self, now: Instant, rtt: Duration) {
        let bandwidth = self.bandwidth.get();
        let is_over = match self.state {
            State::Startup => false,
            State::Drain { since } => self.rounds.count() > since + DRAIN_ROUNDS,
            State::ProbeBw(_) | State::ProbeRtt => true,
        };
        let Some(min_rtt) = self.min_rtt.get().filter(|_| is_over) else {
            return;
        };
        if let Some(coupling) = &mut self.coupling {
            let has_others = self.cross_traffic.is_present();
            coupling.on_sample(now, rtt.saturating_sub(min_rtt), bandwidth, has_others);
            if coupling.takes_over() {
                self.cross_traffic.on_seen(now);
                self.random_loss.forget();
                self.set_bandwidth(bandwidth / 2);
            }
        }
    }

    /// The largest rate of the path, in bytes per second, if it rests for another one.
    pub(super) fn resting_rate(&self) -> Option<u64> {
        self.coupling.as_ref()?.resting_rate()
    }
}

#[cfg(test)]
mod tests;
