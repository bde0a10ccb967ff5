//! Decisions of a bundle's engine, as logged by one connection.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::meter::{list, whole};
use crate::qlog::Event;
use crate::units;

/// The phase that follows slow start.
const CONGESTION_AVOIDANCE: &str = "congestion_avoidance";

/// A bundle, as logged by one of its connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// Its number within the endpoint.
    pub number: u64,
    /// Decisions of its engine, in time order.
    pub decisions: Vec<Decision>,
}

/// A decision of the engine, with the names of the log.
///
/// Lists have an entry for each member that took part, in the order of joining.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Seconds since the log's reference time.
    pub time_s: f64,
    /// The signal that triggered the decision.
    pub trigger: String,
    /// The action taken.
    pub action: String,
    /// The phase afterwards: `slow_start` or `congestion_avoidance`.
    pub phase: String,
    /// Index in the lists of the member that triggered it.
    pub affected: Option<u64>,
    /// Index in the lists of the connection that logged it, if it took part.
    pub own: Option<u64>,
    /// Growth of the bundle, by which the engine decides whether to stay in slow start.
    pub gamma: Option<f64>,
    /// Number of fluctuation events counted so far.
    pub fluctuations: u64,
    /// Windows in bytes, or rates in bytes per second, before the decision.
    pub before: Vec<u64>,
    /// The same after the decision.
    pub after: Vec<u64>,
}

/// A decision with the number of its bundle.
pub(super) struct LoggedDecision {
    pub(super) bundle: u64,
    pub(super) decision: Decision,
}

impl Decision {
    /// The decision in `event`, if it is one.
    pub(super) fn of(event: &Event) -> Option<LoggedDecision> {
        if event.kind() != "bundle_updated" {
            return None;
        }
        let text = |key| event.text(&[key]).unwrap_or("unknown").to_owned();
        let number = |key| event.data.get(key).and_then(whole);
        let numbers = |key| list(&event.data, key).iter().filter_map(whole).collect();
        let decision = Self {
            time_s: event.time_s,
            trigger: text("trigger"),
            action: text("action"),
            phase: text("phase"),
            affected: number("affected"),
            own: number("own"),
            gamma: event.number(&["gamma"]),
            fluctuations: number("fluctuations").unwrap_or_default(),
            before: numbers("before"),
            after: numbers("after"),
        };
        Some(LoggedDecision {
            bundle: number("bundle").unwrap_or_default(),
            decision,
        })
    }

    /// Whether both are the same decision, logged by two members. Every member that took part logs it.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.before.len() > 1
            && self.time_s == other.time_s
            && self.trigger == other.trigger
            && self.action == other.action
            && self.phase == other.phase
            && self.affected == other.affected
            && self.gamma == other.gamma
            && self.fluctuations == other.fluctuations
            && self.before == other.before
            && self.after == other.after
    }

    fn to_json(&self) -> Value {
        json!({
            "time_s": self.time_s,
            "trigger": self.trigger,
            "action": self.action,
            "phase": self.phase,
            "affected": self.affected,
            "own": self.own,
            "gamma": self.gamma,
            "fluctuations": self.fluctuations,
            "before": self.before,
            "after": self.after,
        })
    }
}

impl Bundle {
    /// Number of decisions by trigger and action.
    pub fn counts(&self) -> BTreeMap<&str, BTreeMap<&str, u64>> {
        let mut counts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for decision in &self.decisions {
            let of_trigger = counts.entry(&*decision.trigger).or_default();
            *of_trigger.entry(&*decision.action).or_default() += 1;
        }
        counts
    }

    /// Number of fluctuation events counted up to the last decision.
    pub fn fluctuations(&self) -> u64 {
        self.decisions.last().map_or(0, |last| last.fluctuations)
    }

    /// Growth of the bundle at the last decision.
    pub fn gamma(&self) -> Option<f64> {
        self.decisions.last()?.gamma
    }

    /// Whether slow start has ended by the last decision.
    pub fn is_out_of_slow_start(&self) -> bool {
        let last = self.decisions.last();
        last.is_some_and(|last| last.phase == CONGESTION_AVOIDANCE)
    }

    /// When slow start ended, in seconds since the log's reference time; `None` if it has not ended, or
    /// ended before the first decision.
    pub fn left_slow_start_s(&self) -> Option<f64> {
        let after = self.decisions.get(1..).unwrap_or_default();
        let left = self.decisions.iter().zip(after).rfind(|(one, next)| {
            one.phase != CONGESTION_AVOIDANCE && next.phase == CONGESTION_AVOIDANCE
        });
        left.filter(|_| self.is_out_of_slow_start())
            .map(|(_, decision)| decision.time_s)
    }

    /// The bundle as lines of text; times are relative to `start_s`.
    pub(super) fn lines(&self, start_s: f64) -> Vec<Line> {
        let mut head = format!(
            "{}, {}",
            units::counted(self.decisions.len() as u64, "decision"),
            units::counted(self.fluctuations(), "fluctuation event")
        );
        if let Some(gamma) = self.gamma() {
            let _ = write!(head, ", gamma {} at the end", units::number(gamma));
        }
        let line = |key, value| Line { key, value };
        let mut lines = vec![line("bundle", format!("{}: {head}", self.number))];
        for (trigger, actions) in self.counts() {
            let actions: Vec<_> = actions
                .iter()
                .map(|(action, count)| format!("{action} {count}"))
                .collect();
            lines.push(line(
                "decided",
                format!("{trigger}: {}", actions.join(", ")),
            ));
        }
        lines.push(line("slow start", self.slow_start(start_s)));
        lines
    }

    /// The end of slow start as text; times are relative to `start_s`.
    pub(super) fn slow_start(&self, start_s: f64) -> String {
        match self.left_slow_start_s() {
            Some(at) => format!("ended after {}", units::seconds(at - start_s)),
            None if self.is_out_of_slow_start() => "ended before the log".to_owned(),
            None => "not ended".to_owned(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let decisions = self.decisions.iter().map(Decision::to_json);
        json!({
            "bundle": self.number,
            "decisions_by_trigger": self.counts(),
            "fluctuations": self.fluctuations(),
            "gamma": self.gamma(),
            "left_slow_start_s": self.left_slow_start_s(),
            "decisions": decisions.collect::<Vec<_>>(),
        })
    }
}

/// A line of a summary.
pub(super) struct Line {
    pub(super) key: &'static str,
    pub(super) value: String,
}

#[cfg(test)]
mod tests;
