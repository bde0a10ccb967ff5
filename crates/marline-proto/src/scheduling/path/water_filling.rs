//! Slower paths carry what faster ones would deliver later.

use super::view::{open, usable};
use super::{PathScheduler, PathView, Plan, StreamView, Work};
use crate::scheduling::stream::Sharing;

/// A packet takes the fastest path that has room; on a slower one it is of a stream which the faster ones
/// would complete only after that packet has arrived, and without such a stream, there is none.
///
/// Water fills connected vessels so: the deeper ones first, the others from the level where they begin. How
/// deep a path is follows from half its round-trip time, how wide from its window and that time. What a
/// stream waits for are its own bytes and those that its siblings send meanwhile, as the stream scheduler
/// shares: a short or urgent stream stays on fast paths beside a long one that uses all. Nothing is queued
/// on a path, so that what comes later and is more urgent can still go first.
///
/// It differs from [`SaEcf`](super::SaEcf), which compares whole rounds of two paths and remembers who waits, in
/// that it has the rates of all faster paths and no memory; and from [`Hbes`](super::Hbes) in that it knows what a
/// stream has left, and keeps it waiting rather than in a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaterFilling;

impl WaterFilling {
    /// Bytes that `path`, which is full, delivers of what it is given from now on, within `seconds`.
    fn delivers(path: &PathView, seconds: f64) -> f64 {
        let Some(rtt) = path.smoothed_rtt else {
            return 0.0;
        };
        let rtt = rtt.as_secs_f64().max(1e-6);
        let bytes = path.window_bytes() * (seconds - rtt / 2.0) / rtt;
        (bytes - path.queued as f64).max(0.0)
    }
}

/// Bytes that leave until `stream`, at `place` in the order, is complete.
fn until_complete(work: &Work<'_>, place: usize, stream: &StreamView) -> f64 {
    let streams = work.streams;
    match work.sharing {
        Sharing::InOrder => streams[..=place]
            .iter()
            .map(|other| other.remaining as f64)
            .sum(),
        Sharing::Weighted => {
            let turns = stream.remaining as f64 / f64::from(stream.weight.max(1));
            let meanwhile = |other: &StreamView| {
                let share = turns * f64::from(other.weight.max(1));
                share.min(other.remaining as f64)
            };
            streams.iter().map(meanwhile).sum()
        }
    }
}

impl PathScheduler for WaterFilling {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        let Some(first) = work.streams.first() else {
            return Plan::Wait;
        };
        let Some(path) = open(paths).min_by_key(|path| path.delay()) else {
            return Plan::Wait;
        };
        let faster = usable(paths).filter(|other| other.delay() < path.delay());
        let (Some(rtt), true) = (path.smoothed_rtt, faster.clone().next().is_some()) else {
            return Plan::send(first.id, Some(path));
        };
        let arrival = (rtt / 2 + path.rttvar).as_secs_f64();
        let meanwhile: f64 = faster.map(|other| Self::delivers(other, arrival)).sum();
        let is_late = |(place, stream): &(usize, &StreamView)| {
            until_complete(work, *place, stream) > meanwhile
        };
        let late = work.streams.iter().enumerate().find(is_late);
        late.map_or(Plan::Wait, |(_, stream)| Plan::send(stream.id, Some(path)))
    }

    fn compares_streams(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "water_filling"
    }
}
