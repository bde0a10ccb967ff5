//! How long streams took, each by itself and in groups.

use std::collections::BTreeMap;

use marline::Instant;

use crate::scenario::{StreamDef, WatchedObject};

/// Of more streams than these, none has a metric of its own.
const NAMED: usize = 64;

/// When a stream was asked for, and when the last of it had arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) asked: Instant,
    pub(super) ended: Instant,
}

impl Life {
    pub(super) const fn new(at: Instant) -> Self {
        Self {
            asked: at,
            ended: at,
        }
    }

    fn seconds(&self) -> f64 {
        self.ended.saturating_since(self.asked).as_secs_f64()
    }
}

/// How long each stream took, and the mean and the longest of all and of each group.
pub(super) fn add_metrics(
    streams: &[StreamDef],
    lives: &[Life],
    metrics: &mut BTreeMap<String, f64>,
) {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (stream, life) in streams.iter().zip(lives) {
        if streams.len() <= NAMED {
            metrics.insert(format!("stream_{}_s", stream.id), life.seconds());
        }
        groups.entry("").or_default().push(life.seconds());
        if let Some(group) = &stream.group {
            groups.entry(group).or_default().push(life.seconds());
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

/// The same for pictures; times count from `start`.
pub(super) fn watched(streams: &[StreamDef], lives: &[Life], start: Instant) -> Vec<WatchedObject> {
    let seconds = |at: Instant| at.saturating_since(start).as_secs_f64();
    let each = streams.iter().zip(lives);
    let each = each.map(|(stream, life)| WatchedObject {
        name: match &stream.group {
            Some(group) => format!("stream {} ({group})", stream.id),
            None => format!("stream {}", stream.id),
        },
        discovered_s: seconds(life.asked),
        requested_s: seconds(life.asked),
        first_byte_s: None,
        finished_s: Some(seconds(life.ended)),
    });
    each.collect()
}
