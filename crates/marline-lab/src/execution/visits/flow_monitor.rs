//! The effect of a visit on background flows.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::{Instant, Runtime};

use super::super::background::Flows;
use super::super::{Probe, sleep};
use crate::scenario::Outcome;
use crate::workload::background::{Packets, Received};

/// The interval of samples.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(50);
/// The time that a rate has to last for the flows to count as recovered.
const RECOVERY_WINDOW: Duration = Duration::from_secs(1);
/// The share of their rate before the visit at which flows count as recovered.
const RECOVERED_SHARE: f64 = 0.9;

/// Counters of all flows together at one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    at: Instant,
    received: u64,
    sent: u64,
    lost: u64,
}

/// Samples the counters of flows.
pub(super) struct FlowMonitor {
    runtime: Arc<dyn Runtime>,
    received: Vec<Received>,
    probe: Probe,
    packets: Vec<Packets>,
    counts: Arc<Mutex<Vec<Count>>>,
}

impl FlowMonitor {
    /// Starts sampling, if there are flows.
    pub(super) fn watch(runtime: &Arc<dyn Runtime>, flows: &Flows) -> Self {
        let monitor = Self {
            runtime: Arc::clone(runtime),
            received: flows.received.clone(),
            probe: flows.probe.clone(),
            packets: flows.packets.clone(),
            counts: Arc::default(),
        };
        if !monitor.received.is_empty() {
            let sampling = monitor.clone();
            runtime.spawn(Box::pin(async move {
                loop {
                    sampling.sample();
                    sleep(&*sampling.runtime, SAMPLING_INTERVAL).await;
                }
            }));
        }
        monitor
    }

    fn sample(&self) {
        let seen = self.probe.seen();
        let count = Count {
            at: self.runtime.now(),
            received: self.received.iter().map(Received::bytes).sum(),
            sent: seen.packets_sent + self.packets.iter().map(Packets::sent).sum::<u64>(),
            lost: seen.packets_lost + self.packets.iter().map(Packets::lost).sum::<u64>(),
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.push(count);
    }

    /// The samples around a visit from `start` to `end`; the baseline begins at `before`.
    pub(super) fn stop(&self, before: Instant, start: Instant, end: Instant) -> FlowCounts {
        self.sample();
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        FlowCounts {
            counts: counts.clone(),
            before,
            start,
            end,
        }
    }
}

impl Clone for FlowMonitor {
    fn clone(&self) -> Self {
        Self {
            runtime: Arc::clone(&self.runtime),
            received: self.received.clone(),
            probe: self.probe.clone(),
            packets: self.packets.clone(),
            counts: Arc::clone(&self.counts),
        }
    }
}

/// The flows' counters before, during and after a visit.
pub(super) struct FlowCounts {
    /// At least one.
    counts: Vec<Count>,
    before: Instant,
    start: Instant,
    end: Instant,
}

impl FlowCounts {
    pub(super) fn add_to(&self, outcome: &mut Outcome, watch: bool) {
        let last = self.counts.last().map_or(self.end, |count| count.at);
        for (name, from, to) in [
            ("before", self.before, self.start),
            ("during", self.start, self.end),
            ("after", self.end, last),
        ] {
            let (from, to) = (self.at(from), self.at(to));
            if let Some(rate) = rate(from, to) {
                let name = format!("background_{name}_mbps");
                outcome.metrics.insert(name, rate);
            }
            if to.sent > from.sent {
                let lost = (to.lost - from.lost) as f64 / (to.sent - from.sent) as f64;
                let name = format!("background_{name}_loss_ratio");
                outcome.metrics.insert(name, lost);
            }
        }
        if let Some(before) = rate(self.at(self.before), self.at(self.start)) {
            let (start, last) = (self.at(self.start), self.at(last));
            let seconds = last.at.saturating_since(start.at).as_secs_f64();
            let missing = before * seconds / 8e-6 - (last.received - start.received) as f64;
            let metrics = &mut outcome.metrics;
            metrics.insert("background_missing_bytes".to_owned(), missing);
            let back = self.recovered_after(before * RECOVERED_SHARE).as_secs_f64();
            metrics.insert("background_recovery_s".to_owned(), back);
        }
        if let (true, Some(watched)) = (watch, &mut outcome.series) {
            let points = self.counts.windows(2).filter_map(|pair| {
                let [from, to] = pair else { return None };
                let at = to.at.as_nanos() as f64 * 1e-9 - watched.start_s;
                Some((at, rate(*from, *to)?))
            });
            let points = points.collect();
            let name = "goodput_mbps flows".to_owned();
            watched.series.insert(name, points);
        }
    }

    /// The last count that is no later than `at`; the first if all are.
    fn at(&self, at: Instant) -> Count {
        let later = self.counts.partition_point(|count| count.at <= at);
        let count = self.counts.get(later.saturating_sub(1));
        count.copied().unwrap_or_default()
    }

    /// The time after the visit until flows get `least` Mbit/s again for [`RECOVERY_WINDOW`]; the time of observation
    /// if they never do.
    fn recovered_after(&self, least: f64) -> Duration {
        let after = self.counts.partition_point(|count| count.at < self.end);
        let counts = &self.counts[after..];
        for (index, from) in counts.iter().enumerate() {
            let later = &counts[index..];
            let to = later.partition_point(|count| count.at < from.at + RECOVERY_WINDOW);
            let Some(to) = later.get(to) else { break };
            if rate(*from, *to).is_some_and(|rate| rate >= least) {
                return from.at.saturating_since(self.end);
            }
        }
        let last = self.counts.last().map_or(self.end, |count| count.at);
        last.saturating_since(self.end)
    }
}

/// Mbit/s between two counts.
fn rate(from: Count, to: Count) -> Option<f64> {
    let seconds = to.at.saturating_since(from.at).as_secs_f64();
    (seconds > 0.0).then(|| (to.received - from.received) as f64 * 8e-6 / seconds)
}

#[cfg(test)]
mod tests;
