//! The settings in which two sets of results differ.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::Results;
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

/// The settings in which `a` and `b` differ: those of all runs, and of the variants that both have, defaults included.
pub(super) fn differences(a: &Results, b: &Results) -> Vec<SettingDifference> {
    let mut found = Vec::new();
    let both = [
        (
            "backend",
            a.backend.as_str().into(),
            b.backend.as_str().into(),
        ),
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
fn variants(results: &Results) -> Option<&serde_json::Map<String, Value>> {
    results.settings.get("variants")?.as_object()
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
