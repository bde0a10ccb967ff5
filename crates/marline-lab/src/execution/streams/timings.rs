//! How long streams took, individually and in groups.

use std::collections::BTreeMap;

use marline::Instant;

use crate::scenario::{StreamDef, WatchedObject};

/// With more streams than these, no stream has a metric of its own.
const NAMED: usize = 64;

/// When a stream was requested, and when its last byte arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamTiming {
    pub(super) requested: Instant,
    pub(super) ended: Instant,
}

impl StreamTiming {
    pub(super) const fn new(at: Instant) -> Self {
        Self {
            requested: at,
            ended: at,
        }
    }

    fn seconds(&self) -> f64 {
        self.ended.saturating_since(self.requested).as_secs_f64()
    }
}

/// How long each stream took, and the mean and the longest of all and of each group.
pub(super) fn add_metrics(
    streams: &[StreamDef],
    timings: &[StreamTiming],
    metrics: &mut BTreeMap<String, f64>,
) {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (stream, timing) in streams.iter().zip(timings) {
        if streams.len() <= NAMED {
            metrics.insert(format!("stream_{}_s", stream.id), timing.seconds());
        }
        groups.entry("").or_default().push(timing.seconds());
        if let Some(group) = &stream.group {
            groups.entry(group).or_default().push(timing.seconds());
        }
    }
    for (group, seconds) in groups {
        let name = match group {
            "" => "streams".to_owned(),
            group => format!("streams_{group}"),
        };
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let longest = seconds.iter().copied().fold(0.0, f64::max);
        metrics.insert(format!("{name}_mean_s"), mean);
        metrics.insert(format!("{name}_max_s"), longest);
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
