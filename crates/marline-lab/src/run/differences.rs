//! The settings in which two sets of results differ.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Plan, Results};
use crate::scenario::Value;

/// A setting that two sets of results do not share.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingDifference {
    /// Its dotted key, as in `settings` of `results.json`; members of lists have numbers.
    pub key: String,
    /// The variants in which it differs in this way; empty if in all.
    pub variants: Vec<String>,
    /// The value in the first results; `None` if it is not set.
    pub a: Option<Value>,
    /// The value in the second.
    pub b: Option<Value>,
}

/// One line of text.
impl fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |value: &Option<Value>| match value {
            None => "not set".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let (before, after) = (word(&self.a), word(&self.b));
        write!(f, "{}: {before} -> {after}", self.key)?;
        match self.variants.is_empty() {
            true => Ok(()),
            false => write!(f, " (in {})", self.variants.join(", ")),
        }
    }
}

/// The origin of results, or of runs to come.
#[derive(Clone, Copy)]
pub(super) struct Described<'a> {
    backend: &'a str,
    seed: u64,
    repeats: u32,
    settings: &'a Value,
}

impl<'a> From<&'a Results> for Described<'a> {
    fn from(results: &'a Results) -> Self {
        Self {
            backend: &results.backend,
            seed: results.seed,
            repeats: results.repeats,
            settings: &results.settings,
        }
    }
}

impl<'a> From<&'a Plan> for Described<'a> {
    fn from(plan: &'a Plan) -> Self {
        Self {
            backend: &plan.backend,
            seed: plan.seed,
            repeats: plan.repeats,
            settings: &plan.settings,
        }
    }
}

/// Differences named in an error.
const NAMED: usize = 5;

/// The first of [`differences`], as text. Those between points of a sweep are not among them.
pub(super) fn summary_of_differences<'a>(
    a: impl Into<Described<'a>>,
    b: impl Into<Described<'a>>,
) -> String {
    let found = differences(a, b);
    let mut words: Vec<_> = found.iter().take(NAMED).map(ToString::to_string).collect();
    match found.len() {
        0 => words.push("variants, or points of the sweep".to_owned()),
        count if count > NAMED => words.push(format!("and {} more", count - NAMED)),
        _ => {}
    }
    words.join("; ")
}

/// The settings in which `a` and `b` differ: those of all runs, and of the variants that both have, defaults included.
pub(super) fn differences<'a>(
    a: impl Into<Described<'a>>,
    b: impl Into<Described<'a>>,
) -> Vec<SettingDifference> {
    let (a, b) = (a.into(), b.into());
    let mut found = Vec::new();
    let both = [
        ("backend", a.backend.into(), b.backend.into()),
        ("seed", Value::from(a.seed), Value::from(b.seed)),
        ("repeats", a.repeats.into(), b.repeats.into()),
    ];
    for (key, a, b) in both {
        if a != b {
            found.push(SettingDifference {
                key: key.to_owned(),
                variants: Vec::new(),
                a: Some(a),
                b: Some(b),
            });
        }
    }
    let (Some(first), Some(second)) = (variants(a), variants(b)) else {
        return found;
    };
    let shared: Vec<_> = first
        .keys()
        .filter(|name| second.contains_key(*name))
        .collect();
    let start = found.len();
    for &name in &shared {
        for (key, Change { a, b }) in changes(&first[name], &second[name]) {
            let mut known = found[start..].iter_mut();
            match known.find(|known| known.key == key && known.a == a && known.b == b) {
                Some(known) => known.variants.push(name.clone()),
                None => found.push(SettingDifference {
                    key,
                    variants: vec![name.clone()],
                    a,
                    b,
                }),
            }
        }
    }
    for difference in &mut found[start..] {
        if difference.variants.len() == shared.len() {
            difference.variants.clear();
        }
    }
    found
}

/// The settings of each variant.
fn variants(of: Described<'_>) -> Option<&serde_json::Map<String, Value>> {
    of.settings.get("variants")?.as_object()
}

/// A value before and after.
struct Change {
    a: Option<Value>,
    b: Option<Value>,
}

/// The values that differ, by their dotted keys.
fn changes(a: &Value, b: &Value) -> BTreeMap<String, Change> {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    flatten("", a, &mut before);
    flatten("", b, &mut after);
    let mut changes = BTreeMap::new();
    for key in before.keys().chain(after.keys()) {
        let (a, b) = (before.get(key), after.get(key));
        if a != b {
            let change = Change {
                a: a.copied().cloned(),
                b: b.copied().cloned(),
            };
            changes.insert(key.clone(), change);
        }
    }
    changes
}

/// All values in `value` that are neither tables nor lists.
fn flatten<'a>(key: &str, value: &'a Value, into: &mut BTreeMap<String, &'a Value>) {
    let inner = |name: &str| match key {
        "" => name.to_owned(),
        _ => format!("{key}.{name}"),
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                flatten(&inner(name), member, into);
            }
        }
        Value::Array(members) if !members.is_empty() => {
            for (number, member) in members.iter().enumerate() {
                flatten(&inner(&number.to_string()), member, into);
            }
        }
        _ => {
            into.insert(key.to_owned(), value);
        }
    }
}
