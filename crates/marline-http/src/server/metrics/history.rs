//! Metrics of initial windows, careful resume and the history store.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use marline::coordination::history::StoreStatistics;
use marline::observe::events::{
    CarefulResumePhase, CarefulResumePhaseUpdated, InitialWindowChosen,
};
use marline::observe::{Event, Observer};
use marline::{Instant, MakeObserver};

use super::super::exposition::head;

/// Upper bounds of the buckets of initial windows from history, in bytes.
const BUCKETS: [u64; 8] = [
    15_000, 30_000, 60_000, 120_000, 240_000, 480_000, 1_000_000, 4_000_000,
];

/// A step of careful resume that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CarefulResumeStep {
    Remembered,
    GivenUp,
    Jumped,
    Unused,
    Confirmed,
    Retreated,
}

const STEPS: [&str; 6] = [
    "remembered",
    "given_up",
    "jumped",
    "unused",
    "confirmed",
    "retreated",
];

impl CarefulResumeStep {
    /// The step of `update`, if it is counted.
    fn of(update: &CarefulResumePhaseUpdated) -> Option<Self> {
        use CarefulResumePhase as Phase;
        use marline::observe::events::CarefulResumeTrigger as Trigger;
        match (update.old, update.new) {
            (None, Phase::Reconnaissance) => Some(Self::Remembered),
            (_, Phase::Unvalidated) => Some(Self::Jumped),
            (_, Phase::SafeRetreat) => Some(Self::Retreated),
            (Some(Phase::Reconnaissance), Phase::Normal) => Some(Self::GivenUp),
            (Some(Phase::Unvalidated | Phase::Validating), Phase::Normal) => match update.trigger {
                Some(Trigger::RateLimited) => Some(Self::Unused),
                Some(Trigger::LastUnvalidatedPacketAcknowledged) => Some(Self::Confirmed),
                _ => Some(Self::Retreated),
            },
            _ => None,
        }
    }
}

/// Initial windows and careful resume of an endpoint's connections.
#[derive(Debug, Default)]
pub(crate) struct HistoryMetrics {
    /// Paths that began with the default window.
    default: AtomicU64,
    /// Paths that began with a window from history, by its size.
    learnt: [AtomicU64; BUCKETS.len()],
    /// The number of all of these, and the sum of their windows in bytes.
    learnt_paths: AtomicU64,
    learnt_bytes: AtomicU64,
    steps: [AtomicU64; STEPS.len()],
}

impl HistoryMetrics {
    /// Makes an observer for each connection of one endpoint.
    pub(super) fn observers(self: &Arc<Self>) -> MakeObserver {
        let metrics = Arc::clone(self);
        Arc::new(move |_| Some(Box::new(Watch(Arc::clone(&metrics)))))
    }

    fn began(&self, first: &InitialWindowChosen) {
        if !first.is_learnt() {
            self.default.fetch_add(1, Relaxed);
            return;
        }
        if let Some(bucket) = BUCKETS.iter().position(|bound| first.window <= *bound) {
            self.learnt[bucket].fetch_add(1, Relaxed);
        }
        self.learnt_bytes.fetch_add(first.window, Relaxed);
        self.learnt_paths.fetch_add(1, Relaxed);
    }

    /// Writes all metrics except the statistics of the store.
    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let name = "marline_initial_windows_total";
        let help = "Paths by their initial window: from earlier connections, or the default.";
        head(out, name, "counter", help)?;
        let (default, learnt) = (&self.default, &self.learnt_paths);
        for (kind, count) in [("default", default), ("learnt", learnt)] {
            writeln!(out, "{name}{{window=\"{kind}\"}} {}", count.load(Relaxed))?;
        }
        self.write_learnt(out)?;
        let name = "marline_careful_resume_total";
        let help = "Steps of careful resume (RFC 9959).";
        head(out, name, "counter", help)?;
        for (step, count) in STEPS.iter().zip(&self.steps) {
            writeln!(out, "{name}{{step=\"{step}\"}} {}", count.load(Relaxed))?;
        }
        Ok(())
    }

    fn write_learnt(&self, out: &mut String) -> std::fmt::Result {
        let name = "marline_learnt_initial_window_bytes";
        head(
            out,
            name,
            "histogram",
            "Initial windows from earlier connections.",
        )?;
        let mut cumulated = 0;
        for (bound, count) in BUCKETS.iter().zip(&self.learnt) {
            cumulated += count.load(Relaxed);
            writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {cumulated}")?;
        }
        let paths = self.learnt_paths.load(Relaxed).max(cumulated);
        let bytes = self.learnt_bytes.load(Relaxed);
        writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {paths}")?;
        writeln!(out, "{name}_sum {bytes}\n{name}_count {paths}")
    }
}

/// Writes the statistics of the history store.
pub(super) fn write_store(out: &mut String, store: &StoreStatistics) -> std::fmt::Result {
    let name = "marline_path_records";
    head(out, name, "gauge", "Records of paths in memory.")?;
    writeln!(out, "{name} {}", store.records)?;
    let name = "marline_path_lookups_total";
    let help = "Look-ups of paths, by whether a record was in memory.";
    head(out, name, "counter", help)?;
    writeln!(out, "{name}{{result=\"hit\"}} {}", store.hits)?;
    writeln!(out, "{name}{{result=\"miss\"}} {}", store.misses)?;
    for (name, help, count) in [
        (
            "marline_path_store_fetched_total",
            "Records read from the file or the server of the store.",
            store.fetched,
        ),
        (
            "marline_path_store_writes_total",
            "Changes written to the file or the server of the store.",
            store.writes,
        ),
        (
            "marline_path_store_dropped_writes_total",
            "Changes that were discarded because the queue was full or they were refused.",
            store.dropped_writes,
        ),
        (
            "marline_path_store_errors_total",
            "Failures of the file or the server of the store.",
            store.errors,
        ),
    ] {
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {count}")?;
    }
    Ok(())
}

/// Observes one connection.
struct Watch(Arc<HistoryMetrics>);

impl Observer for Watch {
    fn on_event(&mut self, _now: Instant, event: &Event<'_>) {
        match event {
            Event::InitialWindowChosen(first) => self.0.began(first),
            Event::CarefulResumePhaseUpdated(update) => {
                if let Some(step) = CarefulResumeStep::of(update) {
                    self.0.steps[step as usize].fetch_add(1, Relaxed);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
