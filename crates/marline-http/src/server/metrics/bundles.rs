//! Decisions of the engines of bundles, observed from their members.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use marline::observe::events::{BundleAction, BundleTrigger, BundleUpdated};
use marline::observe::{Event, Observer};
use marline::{Instant, MakeObserver};

use super::super::exposition::head;

const TRIGGERS: [&str; 5] = ["joined", "loss", "slow_start_exit", "round", "moved"];
const ACTIONS: [&str; 9] = [
    "none",
    "split",
    "synchronized",
    "coalesced",
    "backed_off",
    "exited",
    "equalized",
    "equalized_rates",
    "shared",
];

/// The index in [`TRIGGERS`].
const fn trigger(trigger: BundleTrigger) -> usize {
    match trigger {
        BundleTrigger::Joined => 0,
        BundleTrigger::Loss => 1,
        BundleTrigger::SlowStartExit => 2,
        BundleTrigger::Round => 3,
        BundleTrigger::Moved => 4,
    }
}

/// The index in [`ACTIONS`].
const fn action(action: BundleAction) -> usize {
    match action {
        BundleAction::None => 0,
        BundleAction::Split => 1,
        BundleAction::Synchronized => 2,
        BundleAction::Coalesced => 3,
        BundleAction::BackedOff => 4,
        BundleAction::Exited => 5,
        BundleAction::Equalized => 6,
        BundleAction::EqualizedRates => 7,
        BundleAction::Shared => 8,
    }
}

/// The bundles of an endpoint, and the decisions of their engines.
#[derive(Debug, Default)]
pub(crate) struct BundleMetrics {
    decisions: [[AtomicU64; ACTIONS.len()]; TRIGGERS.len()],
    /// The number of members of each bundle; updated when one joins or leaves.
    members: Mutex<BTreeMap<u64, u64>>,
}

impl BundleMetrics {
    /// Makes an observer for each connection of one endpoint.
    pub(crate) fn observers(self: &Arc<Self>) -> MakeObserver {
        let metrics = Arc::clone(self);
        Arc::new(move |_| {
            Some(Box::new(Member {
                metrics: Arc::clone(&metrics),
                bundle: None,
            }))
        })
    }

    fn with_members<T>(&self, act: impl FnOnce(&mut BTreeMap<u64, u64>) -> T) -> T {
        act(&mut self.members.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn joined(&self, bundle: u64) {
        self.with_members(|members| *members.entry(bundle).or_default() += 1);
    }

    fn left(&self, bundle: u64) {
        self.with_members(|members| {
            if let Entry::Occupied(mut count) = members.entry(bundle) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        });
    }

    fn decided(&self, decision: &BundleUpdated<'_>) {
        let of_trigger = &self.decisions[trigger(decision.trigger)];
        of_trigger[action(decision.action)].fetch_add(1, Relaxed);
    }

    pub(super) fn write(&self, out: &mut String) -> std::fmt::Result {
        let (bundles, members) = self.with_members(|members| {
            let together = || members.values().filter(|count| **count > 1);
            (together().count(), together().sum::<u64>())
        });
        let name = "marline_bundles";
        let help = "Bundles of two or more connections that are coordinated now.";
        head(out, name, "gauge", help)?;
        writeln!(out, "{name} {bundles}")?;
        let name = "marline_bundle_members";
        head(out, name, "gauge", "Connections in these bundles.")?;
        writeln!(out, "{name} {members}")?;
        let name = "marline_bundle_decisions_total";
        let help = "Decisions of bundles by what they were about and what was done.";
        head(out, name, "counter", help)?;
        for (trigger, actions) in TRIGGERS.iter().zip(&self.decisions) {
            for (action, count) in ACTIONS.iter().zip(actions) {
                let count = count.load(Relaxed);
                // Most pairs never occur.
                if count > 0 {
                    writeln!(
                        out,
                        "{name}{{trigger=\"{trigger}\",action=\"{action}\"}} {count}"
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// A connection that may become a member.
struct Member {
    metrics: Arc<BundleMetrics>,
    bundle: Option<u64>,
}

impl Observer for Member {
    fn on_event(&mut self, _now: Instant, event: &Event<'_>) {
        let Event::BundleUpdated(decision) = event else {
            return;
        };
        if self.bundle.is_none() && decision.path.is_none() {
            self.bundle = Some(decision.bundle);
            self.metrics.joined(decision.bundle);
        }
        // Every member reports the decision; one of the reports is counted.
        if decision.own == 0 {
            self.metrics.decided(decision);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(bundle) = self.bundle {
            self.metrics.left(bundle);
        }
    }
}

#[cfg(test)]
mod tests;
