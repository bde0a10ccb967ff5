//! Who fetches what, and what is left.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use marline::Instant;
use slab::Slab;
use tokio::sync::Notify;

use super::Ranges;
use super::pace::Pace;

/// No range that changes hands is smaller: the header of its request and response, and what both ends do
/// for them, cost less than a hundredth of it.
const SMALLEST: u64 = 64 * 1024;

/// A range stays whole if its end is no more round trips away than these: what its server has sent when
/// it hears that it is to stop comes for nothing, and that is a round trip's worth.
const NEAR: f64 = 4.0;

/// Nothing has come for so long, and for so many times what a response takes: nothing will.
const SILENCE: Duration = Duration::from_secs(1);
const SILENT_WAITS: u32 = 4;

/// Between two looks at what the others do.
const LOOKS: Range<Duration> = Duration::from_millis(10)..Duration::from_millis(250);

/// What the workers of one object share.
pub(super) struct Board {
    ranges: Ranges,
    /// Bytes that nobody fetches.
    left: VecDeque<Range<u64>>,
    claims: Slab<Claim>,
    lanes: Vec<Seat>,
    /// Whether the server makes the lanes equally fast.
    pub(super) coordinated: bool,
    /// Names the representation, once something has come.
    pub(super) validator: Option<HeaderValue>,
}

/// What the board knows of a lane.
#[derive(Default)]
struct Seat {
    failed: bool,
    /// It was silent: others fetch what it was to.
    silent: bool,
    pace: Pace,
    /// When something came, or was asked for after all before had come.
    heard: Instant,
}

/// A range that a worker fetches.
struct Claim {
    lane: usize,
    /// What has not come.
    rest: Range<u64>,
    /// Its worker reads no further than the end of `rest`, whatever it has asked for.
    cut: bool,
    /// It has changed hands, or its end has, since something came.
    fresh: bool,
    /// For its worker: nothing of it is left to do.
    taken: Arc<Notify>,
}

/// What a worker is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Fetch the range of this claim.
    Fetch(usize),
    /// Ask again, at the latest after this time.
    Wait(Duration),
    /// Nothing, ever.
    End,
}

/// The part of a chunk that is still wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Where it goes.
    pub(super) offset: u64,
    /// Bytes, from its beginning.
    pub(super) bytes: u64,
    /// Whether nothing more is to come of a range that was cut short.
    pub(super) stop: bool,
    /// Whether it is time to ask for more on the lane.
    pub(super) ask: bool,
}

impl Board {
    pub(super) fn new(lanes: usize, ranges: Ranges) -> Self {
        Self {
            ranges,
            left: VecDeque::new(),
            claims: Slab::new(),
            lanes: (0..lanes).map(|_| Seat::default()).collect(),
            coordinated: false,
            validator: None,
        }
    }

    /// `lane` is to fetch `range`.
    pub(super) fn claim(&mut self, lane: usize, range: Range<u64>, now: Instant) -> usize {
        self.add(lane, range, false, now)
    }

    fn add(&mut self, lane: usize, rest: Range<u64>, fresh: bool, now: Instant) -> usize {
        if self.rest(lane) == 0 {
            self.lanes[lane].heard = now;
        }
        self.claims.insert(Claim {
            lane,
            rest,
            cut: false,
            fresh,
            taken: Arc::default(),
        })
    }

    /// The bytes of a claim that have not arrived.
    pub(super) fn rest_of(&self, claim: usize) -> Range<u64> {
        self.claims[claim].rest.clone()
    }

    /// Notified when another lane takes over all that is left of a claim.
    pub(super) fn taken(&self, claim: usize) -> &Arc<Notify> {
        &self.claims[claim].taken
    }

    /// A response has begun on `lane`.
    pub(super) fn answered(&mut self, lane: usize, asked: Instant, now: Instant) {
        let seat = &mut self.lanes[lane];
        seat.pace.answered(asked, now);
        seat.heard = now;
        seat.silent = false;
    }

    /// `len` bytes of a claim have arrived.
    pub(super) fn arrived(&mut self, claim: usize, len: u64, now: Instant) -> Taken {
        let claim = &mut self.claims[claim];
        let seat = &mut self.lanes[claim.lane];
        seat.pace.arrived(len, now);
        seat.heard = now;
        seat.silent = false;
        claim.fresh = false;
        let offset = claim.rest.start;
        let bytes = len.min(claim.rest.end - offset);
        claim.rest.start += bytes;
        let rest = claim.rest.end - claim.rest.start;
        Taken {
            offset,
            bytes,
            stop: claim.cut && rest == 0,
            ask: rest <= seat.pace.ahead(),
        }
    }

    /// All of a claim has come, or others have what has not.
    pub(super) fn complete(&mut self, claim: usize) {
        self.claims.remove(claim);
    }

    /// The lane of a claim has failed.
    pub(super) fn lose(&mut self, claim: usize) {
        let claim = self.claims.remove(claim);
        self.lanes[claim.lane].failed = true;
        self.give_back(claim.rest);
    }

    /// The lanes that have not failed.
    pub(super) fn live(&self) -> impl Iterator<Item = usize> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter_map(|(lane, seat)| (!seat.failed).then_some(lane))
    }

    fn give_back(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.left.push_front(range);
        }
    }

    /// What a worker of `lane` that has nothing to do, or little, is to do next.
    pub(super) fn next(&mut self, lane: usize, now: Instant) -> Next {
        if self.lanes[lane].failed {
            return Next::End;
        }
        let silent = self.lanes[lane].silent;
        if (!silent || self.live().all(|lane| self.lanes[lane].silent))
            && let Some(range) = self.take()
        {
            return Next::Fetch(self.add(lane, range, false, now));
        }
        let others = self.claims.iter().any(|(_, claim)| claim.lane != lane);
        if self.ranges == Ranges::Equal || (!others && self.left.is_empty()) {
            return Next::End;
        }
        let bound = self.silence();
        let waits = self.rest(lane) > 0 && now.saturating_since(self.lanes[lane].heard) >= bound;
        let hands_on = match self.ranges {
            Ranges::Auto => !self.coordinated,
            Ranges::Equal => false,
            Ranges::Handed => true,
        };
        let taken = match silent || waits {
            true => None,
            false => self
                .take_from_silent(lane, bound, now)
                .or_else(|| hands_on.then(|| self.take_from_slow(lane, now)).flatten()),
        };
        match taken {
            Some(range) => Next::Fetch(self.add(lane, range, true, now)),
            None => {
                let wait = self.lanes[lane].pace.wait();
                Next::Wait(wait.clamp(LOOKS.start, LOOKS.end))
            }
        }
    }

    /// A share of what nobody fetches.
    fn take(&mut self) -> Option<Range<u64>> {
        let left: u64 = self.left.iter().map(|range| range.end - range.start).sum();
        let lanes = self.live().count().max(1) as u64;
        let range = self.left.pop_front()?;
        let len = left.div_ceil(lanes).max(SMALLEST);
        let end = range.end.min(range.start.saturating_add(len));
        self.give_back(end..range.end);
        Some(range.start..end)
    }

    /// How long nothing comes on a lane before it is silent.
    fn silence(&self) -> Duration {
        let waits = self.lanes.iter().map(|seat| seat.pace.wait());
        SILENCE.max(SILENT_WAITS * waits.max().unwrap_or_default())
    }

    /// All that is to come of a range on a lane that has fallen silent.
    fn take_from_silent(
        &mut self,
        lane: usize,
        bound: Duration,
        now: Instant,
    ) -> Option<Range<u64>> {
        for (_, claim) in &mut self.claims {
            let seat = &mut self.lanes[claim.lane];
            if claim.lane == lane || now.saturating_since(seat.heard) < bound {
                continue;
            }
            seat.silent = true;
            let rest = claim.rest.clone();
            claim.rest.end = rest.start;
            claim.cut = true;
            claim.taken.notify_one();
            if !rest.is_empty() {
                return Some(rest);
            }
        }
        None
    }

    /// The latter part of the range that will end last, if `lane` gains by it: both are to end together.
    fn take_from_slow(&mut self, lane: usize, now: Instant) -> Option<Range<u64>> {
        let here = &self.lanes[lane];
        let own = here.pace.rate(here.heard).filter(|rate| *rate > 0.0)?;
        let wait = here.pace.wait().as_secs_f64();
        // What is asked for now comes after what was asked for before.
        let begin = wait.max(self.rest(lane) as f64 / own);
        let (end, rate, claim) = self
            .claims
            .iter()
            .filter(|(_, claim)| claim.lane != lane && !claim.fresh)
            .filter_map(|(key, claim)| {
                let rate = self.expected(claim.lane, own, wait, now)?;
                Some((self.rest(claim.lane) as f64 / rate, rate, key))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let there = self.claims[claim].lane;
        let near = NEAR * self.lanes[there].pace.wait().as_secs_f64().max(wait);
        if end < near {
            return None;
        }
        let claim = &mut self.claims[claim];
        let both = (end * rate + begin * own) / (rate + own);
        // Casts to integers saturate.
        let part = (own * (both - begin)) as u64;
        let part = part.min((claim.rest.end - claim.rest.start) / 8 * 7);
        if part < SMALLEST {
            return None;
        }
        let middle = claim.rest.end - part;
        let range = middle..claim.rest.end;
        claim.rest.end = middle;
        claim.cut = true;
        claim.fresh = true;
        Some(range)
    }

    /// Bytes per second on `lane`; where nothing has come for longer than here, what comes here, `own`.
    fn expected(&self, lane: usize, own: f64, wait: f64, now: Instant) -> Option<f64> {
        let seat = &self.lanes[lane];
        match seat.pace.rate(now).filter(|rate| *rate > 0.0) {
            Some(rate) => Some(rate),
            None => (now.saturating_since(seat.heard).as_secs_f64() > 2.0 * wait).then_some(own),
        }
    }

    /// Bytes that are to come on `lane`.
    fn rest(&self, lane: usize) -> u64 {
        let claims = self.claims.iter().filter(|(_, claim)| claim.lane == lane);
        claims
            .map(|(_, claim)| claim.rest.end - claim.rest.start)
            .sum()
    }
}

#[cfg(test)]
mod tests;
