//! A finished run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::RunPosition;
use crate::scenario::{Outcome, RunError, Watched};
use crate::stats::censored_value;

/// A finished run, as in `runs.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Its number in the plan.
    pub run: usize,
    /// Its variant.
    pub variant: String,
    /// Its point, as an index into the plan's.
    pub point: usize,
    /// Its repeat, from 0.
    pub repeat: u32,
    /// The seed of its randomness.
    pub seed: u64,
    /// The measured values, by metric.
    pub metrics: BTreeMap<String, f64>,
    /// Its duration, in seconds of its own clock.
    pub virtual_s: f64,
    /// Packets sent.
    pub packets: u64,
    /// The reason why its metrics do not count, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// The reason why it has no outcome, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Whether it exceeded its time limit, which censors its measurements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The recorded time series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Watched>,
}

impl Record {
    pub(super) fn new(
        run: usize,
        position: RunPosition,
        variant: &str,
        seed: u64,
        result: Result<Outcome, RunError>,
    ) -> Self {
        let timed_out = matches!(result, Err(RunError::TimeLimit { .. }));
        let (outcome, failed) = match result.and_then(checked) {
            Ok(outcome) => (outcome, None),
            Err(error) => (Outcome::default(), Some(error.to_string())),
        };
        Self {
            run,
            variant: variant.to_owned(),
            point: position.point,
            repeat: position.repeat,
            seed,
            metrics: outcome.metrics,
            virtual_s: outcome.virtual_s,
            packets: outcome.packets,
            invalid: outcome.invalid,
            failed,
            timed_out,
            series: outcome.series,
        }
    }

    /// The observation of `metric`: the value, if it counts, and a [bound](censored_value) if the run exceeded its
    /// time limit.
    pub fn observed(&self, metric: &str) -> Option<f64> {
        match self.timed_out {
            true => Some(censored_value(metric)),
            false => self.metrics.get(metric).copied().filter(|_| self.counts()),
        }
    }

    /// Whether its metrics count.
    pub fn counts(&self) -> bool {
        self.failed.is_none() && self.invalid.is_none()
    }
}

/// Checks that all metrics are finite.
fn checked(outcome: Outcome) -> Result<Outcome, RunError> {
    let is_invalid = |(_, value): &(&String, &f64)| !value.is_finite();
    if let Some((name, value)) = outcome.metrics.iter().find(is_invalid) {
        return Err(RunError::Failed(format!("metric {name} is {value}")));
    }
    if !outcome.virtual_s.is_finite() {
        return Err(RunError::Failed(
            "the run's duration is not a number".to_owned(),
        ));
    }
    Ok(outcome)
}
