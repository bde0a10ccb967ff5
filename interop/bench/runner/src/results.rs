//! Results of all measurements.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use crate::args::Args;
use crate::statistics::median;
use crate::task::Metric;

/// Values by round.
type Rounds = BTreeMap<usize, f64>;

/// All measurements, by stack and metric.
#[derive(Serialize)]
pub(crate) struct Results {
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
    pub(crate) realtime: bool,
    pub(crate) server_core: usize,
    pub(crate) client_core: usize,
    /// The processor, as the system names it.
    pub(crate) processor: String,
    /// Load average over a minute before the first measurement.
    pub(crate) load_before: f64,
    pub(crate) failures: Vec<String>,
    stacks: BTreeMap<&'static str, BTreeMap<Metric, Rounds>>,
}

impl Results {
    pub(crate) fn new(args: &Args) -> Self {
        Self {
            rounds: args.rounds,
            quick: args.quick,
            realtime: args.realtime,
            server_core: args.server_core,
            client_core: args.client_core,
            processor: processor().unwrap_or_default(),
            load_before: load().unwrap_or_default(),
            failures: Vec::new(),
            stacks: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, stack: &'static str, round: usize, values: Vec<(Metric, f64)>) {
        let metrics = self.stacks.entry(stack).or_default();
        for (metric, value) in values {
            metrics.entry(metric).or_default().insert(round, value);
        }
    }

    /// Whether there are measurements of `stack`.
    pub(crate) fn has(&self, stack: &str) -> bool {
        self.stacks.contains_key(stack)
    }

    /// The median over all rounds.
    pub(crate) fn median(&self, stack: &str, metric: Metric) -> Option<f64> {
        median(self.values(stack, metric)?.values().copied().collect())
    }

    /// The median over all rounds of `stack`'s value as a multiple of `other`'s in the same round.
    pub(crate) fn ratio(&self, stack: &str, other: &str, metric: Metric) -> Option<f64> {
        let others = self.values(other, metric)?;
        let ratios = self.values(stack, metric)?.iter();
        median(
            ratios
                .filter_map(|(round, value)| Some(value / others.get(round)?))
                .collect(),
        )
    }

    fn values(&self, stack: &str, metric: Metric) -> Option<&Rounds> {
        self.stacks.get(stack)?.get(&metric)
    }
}

fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn ratios_are_computed_within_each_round() {
        let mut results = Results::new(&Args::parse_from(["bench-peers"]));
        // The machine was half as fast in round 1.
        for (round, speed) in [(0, 2.0), (1, 1.0), (2, 2.0)] {
            results.add("fast", round, vec![(Metric::BulkGbitS, 3.0 * speed)]);
            if round != 2 {
                results.add("slow", round, vec![(Metric::BulkGbitS, speed)]);
            }
        }
        let ratio = results.ratio("fast", "slow", Metric::BulkGbitS);
        assert_eq!(ratio, Some(3.0));
        assert_eq!(results.median("fast", Metric::BulkGbitS), Some(6.0));
        assert_eq!(results.ratio("fast", "none", Metric::BulkGbitS), None);
        assert_eq!(results.median("fast", Metric::RequestsS), None);
    }
}
