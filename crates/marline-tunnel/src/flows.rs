//! The path of each inner flow.
//!
//! A flow has one path at a time, so that its packets arrive in order. Small flows take the path on which a packet arrives first.
//! Large ones share the rates of the paths: a path whose share would be clearly more takes one over. A flow moves only so that its
//! next packet arrives after those before: at once to a slower path, or after a pause of its own (flowlet switching, Kandula et
//! al., 2007), or after a pause that the table makes, of one flow at a time.
//!
//! The rate of a path that was never full is not known. Before a flow moves there that has its own path alone, filler is sent on the
//! other path at the rate of the flow, which stays where it is: only if the path carries that much does the flow move.

use std::time::Duration;

use marline::PathId;
use marline_link::Time;

/// Sets of flows: a flow is in the set of its hash.
const SETS: usize = 512;

/// Flows of a set; the one without packets for the longest time makes room for another.
const WAYS: usize = 4;

/// The interval in which rates are measured.
const INTERVAL: Duration = Duration::from_millis(100);

/// The part of the latest interval in the rate of a flow.
const LATEST: f64 = 0.5;

/// The rate from which on a flow is large, as a multiple of the one below which it is light.
const LARGE: f64 = 2.0;

/// The share on another path, as a multiple of the present one, from which on a large flow moves.
const CLEAR_GAIN: f64 = 1.25;

/// The rate that is assumed of a path that was never full, as a multiple of the largest other one: it is tried once.
const ASSUMED: f64 = 1.3;

/// Intervals in which a path has to be full for its rate to be known.
const INTERVALS_TESTED: u32 = 3;

/// The time for which a rate is known.
const TESTED_FOR: Duration = Duration::from_secs(60);

/// The part of a path's rate that its flows use if it is full.
const FULL: f64 = 0.8;

/// The time that a large flow stays on a path that works.
const MIN_STAY: Duration = Duration::from_secs(1);

/// The time in which a flow that has moved adapts its window to another round-trip time.
const JUDGED_AFTER: Duration = Duration::from_secs(3);

/// The part of its rate that a flow keeps, at least, if its move was good.
const KEPT: f64 = 0.9;

/// The time for which filler is sent, in round trips: slow start doubles the rate in each.
const TRIAL_ROUNDS: u32 = 8;

/// The shortest and the longest time of a trial.
const SHORTEST_TRIAL: Duration = Duration::from_millis(500);
const LONGEST_TRIAL: Duration = Duration::from_secs(2);

/// Bytes that wait for a path on trial: no filler is added to more.
const FILLER_WAITING: u64 = 48_000;

/// The longest pause that is made for a flow.
const MAX_PAUSE: Duration = Duration::from_millis(300);

/// The difference of arrival times for which a small flow moves.
const CLEARLY_EARLIER: Duration = Duration::from_millis(3);

/// A path that works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: PathId,
    /// Whether it carries packets only if no other does.
    pub(crate) is_backup: bool,
    /// Bytes per second; more may be possible if it was never full.
    pub(crate) rate: f64,
    /// Bytes that wait before the transport.
    pub(crate) waiting: u64,
    /// The time from the transport to the peer.
    pub(crate) delay: Duration,
    /// How much later than that packets arrive.
    pub(crate) jitter: Duration,
}

impl Candidate {
    /// The time until the first of further bytes arrives, behind all that waits.
    fn arrival(&self) -> Duration {
        self.delay + self.time_of(self.waiting)
    }

    /// The time that the path takes for so many bytes.
    fn time_of(&self, bytes: u64) -> Duration {
        let seconds = bytes as f64 / self.rate.max(1.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_PAUSE)
    }
}

/// A packet of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// The hash of its flow.
    pub(crate) flow: u64,
    /// Its bytes.
    pub(crate) size: usize,
}

/// The path of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) path: PathId,
    /// The flow pauses until this time, so that its packets stay in order.
    pub(crate) paused_until: Option<Time>,
    /// Whether the flow has little to carry.
    pub(crate) is_light: bool,
    /// The path on which as many bytes of filler are sent.
    pub(crate) filler: Option<PathId>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    hash: u64,
    path: PathId,
    moved_at: Time,
    latest: Time,
    /// When the latest of its packets arrives, by the latest estimate.
    arrives: Time,
    /// Bytes of this interval.
    bytes: u64,
    /// Bytes per second before.
    rate: f64,
    /// The same when it moved.
    rate_before: f64,
}

impl Flow {
    /// Whether it has less than before it moved, and has had the time for as much, or fills the path with it.
    fn has_lost(&self, now: Time, is_filled: bool) -> bool {
        let time = if is_filled { MIN_STAY } else { JUDGED_AFTER };
        now >= self.moved_at + time && self.rate < KEPT * self.rate_before
    }
}

/// The flows of a path.
#[derive(Clone, Copy, Debug)]
struct Usage {
    id: PathId,
    /// Bytes per second of all flows.
    load: f64,
    /// Large flows.
    large: u32,
    /// Packets of this interval, and those that found others waiting.
    packets: u32,
    delayed: u32,
    /// Full intervals in sequence.
    full: u32,
    tested: Option<Time>,
    /// The most that its flows had together lately, in bytes per second, or what they had when it was full: the estimate of a path
    /// that carries little falls.
    carried: f64,
    carried_at: Time,
}

impl Usage {
    fn new(id: PathId) -> Self {
        Self {
            id,
            load: 0.0,
            large: 0,
            packets: 0,
            delayed: 0,
            full: 0,
            tested: None,
            carried: 0.0,
            carried_at: Time::ZERO,
        }
    }
}

/// A move to another path.
struct Move {
    target: Candidate,
    may_pause: bool,
}

/// The pause of a flow.
#[derive(Clone, Copy, Debug)]
struct Pause {
    hash: u64,
    until: Time,
}

/// Filler on a path whose rate is not known.
#[derive(Clone, Copy, Debug)]
struct Trial {
    path: PathId,
    /// The flow that moves there if the path passes.
    hash: u64,
    until: Time,
}

/// The paths of flows: at most `SETS * WAYS` flows.
#[derive(Debug)]
pub(crate) struct FlowTable {
    sets: Vec<[Option<Flow>; WAYS]>,
    usage: Vec<Usage>,
    interval_began: Time,
    pause: Option<Pause>,
    /// Whether filler may be sent.
    may_fill: bool,
    light: f64,
    trial: Option<Trial>,
}

impl FlowTable {
    /// A table without flows; `may_fill` says whether paths are tried with filler, instead of with a flow. A flow is light below the
    /// rate `light`, in bytes per second.
    pub(crate) fn new(may_fill: bool, light: f64) -> Self {
        Self {
            sets: vec![[None; WAYS]; SETS],
            usage: Vec::new(),
            interval_began: Time::ZERO,
            pause: None,
            may_fill,
            light,
            trial: None,
        }
    }

    fn is_large(&self, flow: &Flow) -> bool {
        flow.rate >= LARGE * self.light
    }

    /// The path of a packet; `None` if there is no path.
    pub(crate) fn choose(
        &mut self,
        now: Time,
        packet: Arrived,
        candidates: &[Candidate],
    ) -> Option<Choice> {
        self.measure(now, candidates);
        let fastest = usable(candidates).min_by_key(|path| path.arrival())?;
        let mut flow = self.take(now, packet.flow, fastest.id);
        let own = usable(candidates).find(|path| path.id == flow.path);
        let must_move = own.is_none();
        let passed = self.end_trial(now, candidates);
        let passed = passed.filter(|trial| trial.hash == flow.hash && !must_move);
        let passed = passed.and_then(|trial| usable(candidates).find(|path| path.id == trial.path));
        let target = match own {
            Some(_) if candidates.len() == 1 => None,
            _ if passed.is_some() => passed.copied(),
            Some(own) if self.is_large(&flow) => {
                self.share_elsewhere(now, &mut flow, own, candidates)
            }
            Some(own) => (fastest.arrival() + CLEARLY_EARLIER < own.arrival()).then_some(*fastest),
            None => Some(*fastest),
        };
        if let Some(target) = target {
            // A small flow is not worth a pause.
            let may_pause = must_move || self.is_large(&flow);
            self.try_move(now, &mut flow, Move { target, may_pause }, candidates);
        }
        let own = candidates.iter().find(|path| path.id == flow.path)?;
        let paused_until = self.pause_of(now, flow.hash);
        let leaves = paused_until.unwrap_or(now);
        let arrives = own.arrival() + own.time_of(packet.size as u64) + own.jitter;
        // Those before it are on the same path, or arrive earlier: a later estimate knows the rate of the path better.
        flow.arrives = leaves + arrives;
        flow.bytes += packet.size as u64;
        flow.latest = now;
        let usage = self.usage_mut(flow.path);
        usage.packets += 1;
        usage.delayed += u32::from(own.waiting > 0);
        let filler = self.filler(&flow, candidates);
        self.put(flow);
        Some(Choice {
            path: own.id,
            paused_until,
            is_light: flow.rate < self.light,
            filler,
        })
    }

    /// Ends the trial if its time is over, or its path has failed; returns it if the path carried all filler.
    fn end_trial(&mut self, now: Time, candidates: &[Candidate]) -> Option<Trial> {
        let trial = self.trial?;
        let path = usable(candidates).find(|path| path.id == trial.path);
        if path.is_some() && now < trial.until {
            return None;
        }
        self.trial = None;
        let path = path?;
        let usage = self.usage_mut(path.id);
        if usage.full == 0 {
            return Some(trial);
        }
        usage.full = 0;
        usage.tested = Some(now);
        (usage.carried, usage.carried_at) = (path.rate, now);
        None
    }

    /// The path that has filler beside a packet of `flow`.
    fn filler(&mut self, flow: &Flow, candidates: &[Candidate]) -> Option<PathId> {
        let trial = self.trial.filter(|trial| trial.hash == flow.hash)?;
        let path = candidates.iter().find(|path| path.id == trial.path)?;
        let usage = self.usage_mut(path.id);
        usage.packets += 1;
        usage.delayed += u32::from(path.waiting > 0);
        (path.waiting < FILLER_WAITING).then_some(path.id)
    }

    /// The path on which a large flow would have clearly more than on its own, which is full; none while that is tried.
    fn share_elsewhere(
        &mut self,
        now: Time,
        flow: &mut Flow,
        own: &Candidate,
        candidates: &[Candidate],
    ) -> Option<Candidate> {
        let usage = self.usage_of(own.id);
        let is_full = usage.full > 0 || usage.load >= FULL * own.rate;
        let has_lost = flow.has_lost(now, usage.full >= INTERVALS_TESTED);
        let is_on_trial = self.trial.is_some_and(|trial| trial.hash == flow.hash);
        if is_on_trial || !(is_full || has_lost) || now < flow.moved_at + MIN_STAY {
            return None;
        }
        let fair = own.rate / f64::from(usage.large.max(1));
        let has = match has_lost {
            true => flow.rate,
            false => flow.rate.max(fair),
        };
        if has_lost {
            // Once: it was tried.
            flow.rate_before = 0.0;
            self.usage_mut(own.id).tested = Some(now);
        }
        let known = |path: &Candidate| path.rate.max(self.usage_of(path.id).carried);
        let best_known = usable(candidates).map(known).fold(0.0, f64::max);
        let share_of = |path: &Candidate, rate: f64| {
            let usage = self.usage_of(path.id);
            (rate / f64::from(usage.large + 1)).max(rate - usage.load)
        };
        let share = |path: &Candidate| {
            let tested = self.usage_of(path.id).tested;
            let is_tested = tested.is_some_and(|at| now < at + TESTED_FOR);
            let rate = match is_tested {
                true => known(path),
                false => known(path).max(ASSUMED * best_known),
            };
            share_of(path, rate)
        };
        let others = usable(candidates).filter(|path| path.id != own.id);
        let best = others.max_by(|a, b| share(a).total_cmp(&share(b)))?;
        let gains = |share: f64| share > CLEAR_GAIN * has;
        if !gains(share(best)) {
            return None;
        }
        let is_alone = usage.large <= 1;
        if self.may_fill && is_alone && !gains(share_of(best, known(best))) {
            if self.trial.is_none() {
                let time = (2 * TRIAL_ROUNDS * best.delay).clamp(SHORTEST_TRIAL, LONGEST_TRIAL);
                self.trial = Some(Trial {
                    path: best.id,
                    hash: flow.hash,
                    until: now + time,
                });
            }
            return None;
        }
        Some(*best)
    }

    /// Moves a flow if its packets stay in order, by a pause if that may be made.
    fn try_move(
        &mut self,
        now: Time,
        flow: &mut Flow,
        Move { target, may_pause }: Move,
        candidates: &[Candidate],
    ) {
        let works = candidates.iter().any(|path| path.id == flow.path);
        let in_order = flow.arrives - target.delay;
        // What was sent on a path that does not answer is lost, or arrives by another.
        if works && in_order > now {
            if !may_pause || in_order.since(now) > MAX_PAUSE || self.pause.is_some() {
                return;
            }
            self.pause = Some(Pause {
                hash: flow.hash,
                until: in_order,
            });
        }
        let (rate, large) = (flow.rate, u32::from(self.is_large(flow)));
        let before = self.usage_mut(flow.path);
        before.load = (before.load - rate).max(0.0);
        before.large = before.large.saturating_sub(large);
        let after = self.usage_mut(target.id);
        after.load += rate;
        after.large += large;
        flow.path = target.id;
        flow.moved_at = now;
        flow.rate_before = flow.rate;
        if !works {
            flow.arrives = now;
        }
    }

    fn pause_of(&mut self, now: Time, hash: u64) -> Option<Time> {
        self.pause = self.pause.filter(|pause| pause.until > now);
        let own = self.pause.filter(|pause| pause.hash == hash);
        own.map(|pause| pause.until)
    }

    /// Ends an interval: measures the rates of flows.
    fn measure(&mut self, now: Time, candidates: &[Candidate]) {
        let elapsed = now.since(self.interval_began);
        if elapsed < INTERVAL {
            return;
        }
        self.interval_began = now;
        self.usage
            .retain(|usage| candidates.iter().any(|path| path.id == usage.id));
        for usage in &mut self.usage {
            let is_full = usage.delayed * 2 > usage.packets;
            usage.full = if is_full { usage.full + 1 } else { 0 };
            if usage.full >= INTERVALS_TESTED {
                usage.tested = Some(now);
            }
            (usage.packets, usage.delayed) = (0, 0);
            (usage.load, usage.large) = (0.0, 0);
        }
        let seconds = elapsed.as_secs_f64();
        for flow in self.sets.iter_mut().flatten().flatten() {
            let latest = flow.bytes as f64 / seconds;
            // After a long interval, the one before it counts less.
            let before = (1.0 - LATEST) * (INTERVAL.as_secs_f64() / seconds).min(1.0);
            flow.rate = before * flow.rate + (1.0 - before) * latest;
            flow.bytes = 0;
            if let Some(usage) = self.usage.iter_mut().find(|usage| usage.id == flow.path) {
                usage.load += flow.rate;
                usage.large += u32::from(flow.rate >= LARGE * self.light);
            }
        }
        for usage in &mut self.usage {
            let is_known = usage.full >= INTERVALS_TESTED || usage.load >= usage.carried;
            if is_known || now >= usage.carried_at + TESTED_FOR {
                (usage.carried, usage.carried_at) = (usage.load, now);
            }
        }
    }

    /// Takes a flow out of the table, or begins one.
    fn take(&mut self, now: Time, hash: u64, path: PathId) -> Flow {
        let set = self.set_mut(hash);
        let known = set
            .iter_mut()
            .find(|flow| flow.is_some_and(|flow| flow.hash == hash));
        let known = known.and_then(Option::take);
        known.unwrap_or(Flow {
            hash,
            path,
            moved_at: now,
            latest: now,
            arrives: now,
            bytes: 0,
            rate: 0.0,
            rate_before: 0.0,
        })
    }

    /// Puts a flow into the table, in the place of the oldest of its set if that is full.
    fn put(&mut self, flow: Flow) {
        let set = self.set_mut(flow.hash);
        let oldest = set.iter_mut().min_by_key(|way| way.map(|flow| flow.latest));
        if let Some(way) = oldest {
            *way = Some(flow);
        }
    }

    fn set_mut(&mut self, hash: u64) -> &mut [Option<Flow>; WAYS] {
        &mut self.sets[(hash % SETS as u64) as usize]
    }

    fn usage_of(&self, id: PathId) -> Usage {
        let known = self.usage.iter().find(|usage| usage.id == id);
        known.copied().unwrap_or(Usage::new(id))
    }

    fn usage_mut(&mut self, id: PathId) -> &mut Usage {
        let at = self.usage.iter().position(|usage| usage.id == id);
        let at = at.unwrap_or_else(|| {
            self.usage.push(Usage::new(id));
            self.usage.len() - 1
        });
        &mut self.usage[at]
    }
}

/// The paths to choose among: backups only if there is no other.
fn usable(candidates: &[Candidate]) -> impl Iterator<Item = &Candidate> + Clone {
    let only_backups = candidates.iter().all(|path| path.is_backup);
    candidates
        .iter()
        .filter(move |path| path.is_backup == only_backups)
}

#[cfg(test)]
mod tests;
