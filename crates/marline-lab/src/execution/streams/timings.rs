//! Durations of streams, individually and in groups.

use std::collections::BTreeMap;

use marline::Instant;

use crate::scenario::{MOST_NAMED_STREAMS, StreamDef, WatchedObject};

/// The times of a stream: of its request, of its last byte, and of its known end.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamTiming {
    pub(super) requested: Instant,
    pub(super) last_byte: Instant,
    pub(super) ended: Instant,
}

impl StreamTiming {
    pub(super) const fn new(at: Instant) -> Self {
        Self {
            requested: at,
            last_byte: at,
            ended: at,
        }
    }

    /// Until `at`, in seconds.
    fn seconds(&self, at: Instant) -> f64 {
        at.saturating_since(self.requested).as_secs_f64()
    }
}

/// The duration of each stream, and the mean and the longest of all and of each group; the same until the last byte of
/// each, and when the last byte of all arrived, from `start`.
pub(super) fn add_metrics(
    streams: &[StreamDef],
    timings: &[StreamTiming],
    start: Instant,
    metrics: &mut BTreeMap<String, f64>,
) {
    let last = timings.iter().map(|timing| timing.last_byte).max();
    let last_s = last.map_or(0.0, |at| at.saturating_since(start).as_secs_f64());
    metrics.insert("last_byte_s".to_owned(), last_s);
    add_times(streams, timings, "", |timing| timing.ended, metrics);
    let last_byte = |timing: &StreamTiming| timing.last_byte;
    add_times(streams, timings, "_last_byte", last_byte, metrics);
}

/// The time that each stream took `until` a moment; `what` is the part of the metrics' names for
/// that moment.
fn add_times(
    streams: &[StreamDef],
    timings: &[StreamTiming],
    what: &str,
    until: impl Fn(&StreamTiming) -> Instant,
    metrics: &mut BTreeMap<String, f64>,
) {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (stream, timing) in streams.iter().zip(timings) {
        let seconds = timing.seconds(until(timing));
        if streams.len() <= MOST_NAMED_STREAMS {
            metrics.insert(format!("stream_{}{what}_s", stream.id), seconds);
        }
        groups.entry("").or_default().push(seconds);
        if let Some(group) = &stream.group {
            groups.entry(group).or_default().push(seconds);
        }
    }
    for (group, seconds) in groups {
        let name = match group {
            "" => "streams".to_owned(),
            group => format!("streams_{group}"),
        };
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let longest = seconds.iter().copied().fold(0.0, f64::max);
        metrics.insert(format!("{name}{what}_mean_s"), mean);
        metrics.insert(format!("{name}{what}_max_s"), longest);
    }
}

/// The same for charts; times count from `start`.
pub(super) fn watched(
    streams: &[StreamDef],
    timings: &[StreamTiming],
    start: Instant,
) -> Vec<WatchedObject> {
    let seconds = |at: Instant| at.saturating_since(start).as_secs_f64();
    let each = streams.iter().zip(timings);
    let each = each.map(|(stream, timing)| WatchedObject {
        name: match &stream.group {
            Some(group) => format!("stream {} ({group})", stream.id),
            None => format!("stream {}", stream.id),
        },
        discovered_s: seconds(timing.requested),
        requested_s: seconds(timing.requested),
        connected_s: None,
        first_byte_s: None,
        finished_s: Some(seconds(timing.ended)),
    });
    each.collect()
}
