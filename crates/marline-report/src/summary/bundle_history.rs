//! The history of a bundle, merged from the logs of its connections.

use std::fmt;

use super::bundle::Line;
use super::{Bundle, Connection, Decision, Summary};
use crate::ordered::Ordered;
use crate::terminal::write_line;
use crate::units;

/// The decisions of a bundle that its connections logged, each once.
#[derive(Clone, Debug, PartialEq)]
pub struct BundleHistory {
    /// The endpoint that logged it: `client` or `server`. Each contains a bundle of its own.
    pub vantage_point: String,
    /// The connections that logged it, by their names in the logs.
    pub members: Vec<String>,
    /// Its number and decisions, without [`Decision::own`].
    pub bundle: Bundle,
    /// The reference time, to the second, because each log reads the clock separately.
    reference: String,
}

/// Length of a wall clock time without fractions of seconds.
const WHOLE_SECONDS: usize = "2026-11-22T05:39:00".len();

impl BundleHistory {
    /// The bundles of all connections of `summaries`, in order of their numbers.
    ///
    /// Numbers restart with each process. Logs are of the same bundle if they have the same number,
    /// and either the same reference time or a decision in common.
    pub fn all<'s>(summaries: impl IntoIterator<Item = &'s Summary>) -> Vec<Self> {
        let mut by_bundle = Ordered::default();
        let mut appeared = 0;
        let connections = summaries.into_iter().flat_map(|s| &s.connections);
        for connection in connections {
            for bundle in &connection.bundles {
                let mut history = Self::of(connection, bundle);
                let key = (bundle.number, history.vantage_point.clone());
                let histories: &mut Vec<Placed> = by_bundle.get_or_insert_with(&key, Vec::new);
                if histories
                    .iter()
                    .any(|known| known.history.contains(&history))
                {
                    continue;
                }
                histories.retain_mut(|known| !history.merge_from(&known.history));
                appeared += 1;
                let place = appeared;
                histories.push(Placed { place, history });
            }
        }
        let mut histories: Vec<_> = by_bundle.into_values().into_iter().flatten().collect();
        histories.sort_by_key(|placed| (placed.history.bundle.number, placed.place));
        let histories = histories.into_iter().map(|placed| placed.history);
        histories.collect()
    }

    fn of(connection: &Connection, bundle: &Bundle) -> Self {
        let mut bundle = bundle.clone();
        for decision in &mut bundle.decisions {
            decision.own = None;
        }
        Self {
            vantage_point: connection.source.vantage_point.clone(),
            members: vec![connection.group.clone()],
            bundle,
            reference: connection
                .source
                .reference
                .chars()
                .take(WHOLE_SECONDS)
                .collect(),
        }
    }

    /// Whether `other`, of the same number and vantage point, is contained already, because the same log was given twice.
    fn contains(&self, other: &Self) -> bool {
        let mut members = other.members.iter();
        members.all(|id| !id.is_empty() && self.members.contains(id))
    }

    /// Merges `known`, of the same number and vantage point, into this, if both are of the same bundle. Returns whether they
    /// are.
    fn merge_from(&mut self, known: &Self) -> bool {
        let have_one_clock = !self.reference.is_empty() && self.reference == known.reference;
        let merged = merge(&known.bundle.decisions, &self.bundle.decisions);
        if !merged.have_common && !have_one_clock {
            return false;
        }
        self.bundle.decisions = merged.decisions;
        self.members.splice(..0, known.members.iter().cloned());
        true
    }
}

/// A history, and when it appeared among all.
struct Placed {
    place: usize,
    history: BundleHistory,
}

/// The result of merging two logs.
struct Merged {
    decisions: Vec<Decision>,
    /// Whether the logs have a decision in common.
    have_common: bool,
}

/// Merges two logs in time order, with common decisions once.
fn merge(mut one: &[Decision], mut other: &[Decision]) -> Merged {
    let mut merged = Vec::with_capacity(one.len().max(other.len()));
    let mut have_common = false;
    while let ([a, one_later @ ..], [b, other_later @ ..]) = (one, other) {
        if a.is_same_as(b) {
            merged.push(a.clone());
            (one, other) = (one_later, other_later);
            have_common = true;
            continue;
        }
        // At equal times, decisions that one log lacks precede common ones.
        let mut now = one_later.iter().take_while(|d| d.time_s == b.time_s);
        if b.time_s < a.time_s || (b.time_s == a.time_s && !now.any(|d| d.is_same_as(b))) {
            merged.push(b.clone());
            other = other_later;
        } else {
            merged.push(a.clone());
            one = one_later;
        }
    }
    merged.extend_from_slice(one);
    merged.extend_from_slice(other);
    Merged {
        decisions: merged,
        have_common,
    }
}

impl fmt::Display for BundleHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decisions = &self.bundle.decisions;
        let start_s = decisions.first().map_or(0.0, |first| first.time_s);
        let mut head = format!("bundle {}", self.bundle.number);
        if !self.vantage_point.is_empty() {
            head += &format!(", {}", self.vantage_point);
        }
        let logs = units::counted(self.members.len() as u64, "connection");
        write_line(f, format_args!("{head}, as logged by {logs}"))?;
        for member in self.members.iter().filter(|member| !member.is_empty()) {
            write_line(f, format_args!("  {:<16}{member}", "member"))?;
        }
        for Line { key, value } in self.bundle.lines(start_s).into_iter().skip(1) {
            write_line(f, format_args!("  {key:<16}{value}"))?;
        }
        let is_idle = |decision: &&Decision| decision.action == "none";
        let idle = decisions.iter().filter(is_idle).count();
        if idle < decisions.len() {
            writeln!(
                f,
                "\n  {:>10}  {:<16}{:<17}{:>6}{:>8}  windows, * marks the trigger",
                "after", "trigger", "action", "events", "gamma"
            )?;
        }
        for decision in decisions.iter().filter(|decision| !is_idle(decision)) {
            row(f, decision, start_s)?;
        }
        match idle as u64 {
            0 => Ok(()),
            idle => writeln!(f, "  {} changed nothing", units::counted(idle, "decision")),
        }
    }
}

fn row(f: &mut fmt::Formatter<'_>, decision: &Decision, start_s: f64) -> fmt::Result {
    let gamma = decision
        .gamma
        .map_or_else(|| "\u{2013}".to_owned(), units::number);
    let head = format!(
        "  {:>10}  {:<16}{:<17}{:>6}{gamma:>8}  ",
        units::seconds(decision.time_s - start_s),
        decision.trigger,
        decision.action,
        decision.fluctuations,
    );
    let per_second = match &*decision.action {
        "equalized_rates" => "/s",
        _ => "",
    };
    let values = |values: &[u64], affected: Option<u64>| {
        let values = (0..).zip(values).map(|(place, &value)| {
            let mark = if affected == Some(place) { "*" } else { "" };
            format!("{}{per_second}{mark}", units::bytes(value as f64))
        });
        values.collect::<Vec<_>>().join(", ")
    };
    let before = values(&decision.before, decision.affected);
    if decision.before == decision.after {
        write_line(f, format_args!("{head}{before}"))
    } else {
        let after = values(&decision.after, None);
        write_line(f, format_args!("{head}{before} \u{2192} {after}"))
    }
}
