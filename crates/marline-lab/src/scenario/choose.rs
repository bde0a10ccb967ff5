//! Selects points of a sweep by their parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Value;
use super::cells::{cell, equal};
use super::document::Node;
use super::error::{Problem, nearest_first, quote, unknown};
use super::overrides::Override;
use super::read::Condition;

/// A point of a sweep.
pub(super) type Point = Arc<BTreeMap<String, Value>>;

/// Largest number of values in an error.
const LISTED: usize = 12;

/// The points of an experiment.
pub(super) struct Points {
    points: Vec<Point>,
    /// The parameters whose values overrides replaced; `None` if they replaced the sweep. Conditions may have values of
    /// these that the file has, and no point.
    replaced: Option<Vec<String>>,
}

impl Points {
    /// `sets` are the overrides on the command line.
    pub(super) fn new(points: Vec<Point>, sets: &[Override]) -> Self {
        let of_sweep = sets.iter().filter_map(|set| match &set.path[..] {
            [sweep, rest @ ..] if sweep == "sweep" => Some(rest.first().cloned()),
            _ => None,
        });
        Self {
            points,
            replaced: of_sweep.collect(),
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Point] {
        &self.points
    }

    /// The points at which each parameter of `condition` has the given value, or one of the given list; at least one.
    ///
    /// # Errors
    /// There is none, or none with one of the values.
    pub(super) fn choose(&self, condition: &Condition) -> Result<Vec<usize>, Problem> {
        let known = || {
            let names = self.points.iter().flat_map(|point| point.keys());
            names.map(String::as_str)
        };
        for (name, wanted) in &condition.parameters {
            if known().next().is_none() {
                let text = "there is no sweep to choose points from; remove `where`";
                return Err(Problem::new(&condition.place, text));
            }
            if !known().any(|parameter| parameter == name) {
                return Err(wanted.problem(unknown("parameter", name, known())));
            }
            if !self.is_replaced(name) {
                self.refuse_absent(name, wanted)?;
            }
        }
        let wanted = condition.parameters.iter();
        let wanted: Vec<_> = wanted.map(|(name, node)| (name, node.value())).collect();
        let is_chosen = |index: &usize| {
            let fits = |(name, want): &(&String, Value)| {
                let value = self.points[*index].get(*name);
                value.is_some_and(|value| fits(value, want))
            };
            wanted.iter().all(fits)
        };
        let chosen: Vec<_> = (0..self.points.len()).filter(is_chosen).collect();
        if chosen.is_empty() {
            let text = "no point of the sweep has these values together; change `where`";
            return Err(Problem::new(&condition.place, text));
        }
        Ok(chosen)
    }

    fn is_replaced(&self, name: &String) -> bool {
        let replaced = self.replaced.as_ref();
        replaced.is_none_or(|replaced| replaced.contains(name))
    }

    /// Refuses a value of `wanted` that the parameter `name` has at no point.
    fn refuse_absent(&self, name: &str, wanted: &Node) -> Result<(), Problem> {
        let mut values: Vec<&Value> = Vec::new();
        for value in self.points.iter().filter_map(|point| point.get(name)) {
            if !values.iter().any(|known| equal(known, value)) {
                values.push(value);
            }
        }
        let has = |want: &Value| values.iter().any(|value| equal(value, want));
        if has(&wanted.value()) {
            return Ok(());
        }
        match wanted.members().iter().find(|node| !has(&node.value())) {
            Some(absent) => Err(absent.problem(without(name, &cell(&absent.value()), &values))),
            None => Ok(()),
        }
    }
}

/// The text of the error that the parameter `name` is never `word`, with its `values`.
fn without(name: &str, word: &str, values: &[&Value]) -> String {
    let values: Vec<_> = values.iter().map(|value| cell(value)).collect();
    let nearest = nearest_first(word, values.iter().map(String::as_str));
    let listed = nearest[..nearest.len().min(LISTED)].join(", ");
    let more = match nearest.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "no point has {name} = {}; its values, nearest first: {listed}{more}",
        quote(word)
    )
}

/// Whether a parameter has the wanted value. A list is either its value or a choice of values.
fn fits(value: &Value, want: &Value) -> bool {
    let is_member = |members: &Vec<Value>| members.iter().any(|member| equal(value, member));
    equal(value, want) || want.as_array().is_some_and(is_member)
}
