//! Slower paths carry the data that faster ones would deliver later.

use std::sync::Arc;

use super::view::{open, usable};
use super::{PathScheduler, PathView, Plan, StreamView, Work};
use crate::scheduling::stream::Sharing;
use crate::settings::{Entry, Make};

/// Its name in settings.
pub(super) const ENTRY: Entry<Make<dyn PathScheduler>, ()> = Entry::plain(
    "water_filling",
    "A slower path only for what faster ones would deliver later",
    |()| Arc::new(|| Box::new(WaterFilling)),
);

/// Sends a packet on the fastest path with room. If that is not the fastest path, the packet is taken from the
/// first stream that the faster paths would complete only after the packet has arrived; without such a
/// stream, nothing is sent.
///
/// This is the water-filling principle: fast paths are filled first, slower ones from the point in time at
/// which they contribute. That point follows from the time to arrival on a path and from its rate: half the round-trip time
/// and a window each round-trip time, or what a rate-based controller knows of them. The bytes that count for a stream are its own and those that its siblings send
/// meanwhile, as the stream scheduler shares: a short or urgent stream stays on fast paths beside a long one
/// that uses all. Nothing is queued on a path, so that more urgent data that is written later can still be
/// sent first.
///
/// Unlike [`SaEcf`](super::SaEcf), which compares whole rounds of two paths and has a hysteresis, it uses the
/// rates of all faster paths and has no state. Unlike [`Hbes`](super::Hbes), it uses the remaining bytes of
/// streams, and lets them wait without a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaterFilling;

impl WaterFilling {
    /// Bytes given to `path`, which is full, from now on that it delivers within `seconds`.
    fn delivers(path: &PathView, seconds: f64) -> f64 {
        if path.smoothed_rtt.is_none() {
            return 0.0;
        }
        let left = seconds - path.one_way().as_secs_f64() - path.departure();
        (path.delivery_rate() * left).max(0.0)
    }
}

/// Bytes that are sent until `stream`, at `place` in the order, is complete.
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
        let Some(path) = open(paths).min_by_key(|path| path.one_way()) else {
            return Plan::Wait;
        };
        let faster = usable(paths).filter(|other| other.one_way() < path.one_way());
        if path.smoothed_rtt.is_none() || faster.clone().next().is_none() {
            return Plan::send(first.id, Some(path));
        }
        let arrival = path.arrival() + path.rttvar.as_secs_f64();
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
        ENTRY.name
    }
}
