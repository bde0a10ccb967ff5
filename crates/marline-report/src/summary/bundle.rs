//! What the engine of a bundle decided, as one of its connections logged it.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::meter::{list, whole};
use crate::qlog::Event;
use crate::units;

/// The phase that follows slow start.
const CONGESTION_AVOIDANCE: &str = "congestion_avoidance";

/// A bundle, as one of its connections saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// Its number within the endpoint.
    pub number: u64,
    /// What its engine decided, in order of time.
    pub decisions: Vec<Decision>,
}

/// A decision of the engine, in the words of the log.
///
/// Lists have an entry for each member that took part, in the order in which they joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Seconds since the log's reference time.
    pub time_s: f64,
    /// What the engine was asked about.
    pub trigger: String,
    /// What it did.
    pub action: String,
    /// Where the bundle stood afterwards: in `slow_start`, or in `congestion_avoidance`.
    pub phase: String,
    /// Place in the lists of the member that it happened to.
    pub affected: Option<u64>,
    /// Place in the lists of the connection that logged it, if it took part.
    pub own: Option<u64>,
    /// Growth by which the engine judges whether slow start still pays.
    pub gamma: Option<f64>,
    /// Fluctuation events that counted so far.
    pub fluctuations: u64,
    /// Windows in bytes, or rates in bytes per second, before.
    pub before: Vec<u64>,
    /// And after.
    pub after: Vec<u64>,
}

impl Decision {
    /// The number of the bundle and the decision that `event` tells, if it tells one.
    pub(super) fn of(event: &Event) -> Option<(u64, Self)> {
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
        Some((number("bundle").unwrap_or_default(), decision))
    }

    /// Whether both are the same, told by two members: all that took part are told.
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
    /// How often the engine did what, by trigger and action.
    pub fn counts(&self) -> BTreeMap<&str, BTreeMap<&str, u64>> {
        let mut counts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for decision in &self.decisions {
            let of_trigger = counts.entry(&*decision.trigger).or_default();
            *of_trigger.entry(&*decision.action).or_default() += 1;
        }
        counts
    }

    /// Fluctuation events that counted, up to the last decision.
    pub fn fluctuations(&self) -> u64 {
        self.decisions.last().map_or(0, |last| last.fluctuations)
    }

    /// Growth of the bundle at the last decision.
    pub fn gamma(&self) -> Option<f64> {
        self.decisions.last()?.gamma
    }

    /// Whether slow start is given up, as the last decision has it.
    pub fn is_out_of_slow_start(&self) -> bool {
        let last = self.decisions.last();
        last.is_some_and(|last| last.phase == CONGESTION_AVOIDANCE)
    }

    /// When slow start was given up, in seconds since the log's reference time; `None` if it goes on, or
    /// was given up before the first decision.
    pub fn left_slow_start_s(&self) -> Option<f64> {
        let after = self.decisions.get(1..).unwrap_or_default();
        let left = self.decisions.iter().zip(after).rfind(|(one, next)| {
            one.phase != CONGESTION_AVOIDANCE && next.phase == CONGESTION_AVOIDANCE
        });
        left.filter(|_| self.is_out_of_slow_start())
            .map(|(_, decision)| decision.time_s)
    }

    /// The bundle as lines of a key and a value; times count from `start_s`.
    pub(super) fn lines(&self, start_s: f64) -> Vec<(&'static str, String)> {
        let mut head = format!(
            "{} decisions, {} fluctuation events",
            self.decisions.len(),
            self.fluctuations()
        );
        if let Some(gamma) = self.gamma() {
            let _ = write!(head, ", gamma {} at the end", units::number(gamma));
        }
        let mut lines = vec![("bundle", format!("{}: {head}", self.number))];
        for (trigger, actions) in self.counts() {
            let actions: Vec<_> = actions
                .iter()
                .map(|(action, count)| format!("{action} {count}"))
                .collect();
            lines.push(("decided", format!("{trigger}: {}", actions.join(", "))));
        }
        lines.push(("slow start", self.slow_start(start_s)));
        lines
    }

    /// What became of slow start, in words; times count from `start_s`.
    pub(super) fn slow_start(&self, start_s: f64) -> String {
        match self.left_slow_start_s() {
            Some(at) => format!("given up after {}", units::seconds(at - start_s)),
            None if self.is_out_of_slow_start() => "given up before".to_owned(),
            None => "not given up".to_owned(),
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

#[cfg(test)]
mod tests;
