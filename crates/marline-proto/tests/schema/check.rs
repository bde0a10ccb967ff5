//! Checks JSON against rules of CDDL.

use serde_json::{Map, Value};

use super::cddl::{Entry, Kind, Rules, Type};

/// The position and kind of a violated rule.
#[derive(Debug)]
pub(super) struct Fault {
    /// Keys and indices, outermost first.
    at: Vec<String>,
    reason: String,
    /// Whether the value is clearly of another type: a field that discriminates types has another text.
    is_other_type: bool,
}

impl Fault {
    fn new(reason: String) -> Self {
        Self {
            at: Vec::new(),
            reason,
            is_other_type: false,
        }
    }

    fn within(mut self, key: &dyn std::fmt::Display) -> Self {
        self.at.insert(0, key.to_string());
        self
    }

    /// The rank among faults of several types: the intended type has the highest.
    fn rank(&self) -> (bool, usize) {
        (!self.is_other_type, self.at.len())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.at.join("."), self.reason)
    }
}

impl Rules {
    /// Checks `value` against the rule `name`.
    pub(super) fn check(&self, name: &str, value: &Value) -> Result<(), Fault> {
        if let Some(rule) = self.get(name) {
            return self.matches(rule, value);
        }
        let is_right = match name {
            "any" => true,
            "bool" => value.is_boolean(),
            "text" => value.is_string(),
            "null" => value.is_null(),
            "uint" => value.is_u64(),
            // Stricter than JSON: some validators parse a number without a fraction as an integer.
            "float32" | "float64" => value.is_f64(),
            _ => panic!("no rule, and not in the prelude: {name}"),
        };
        if is_right {
            Ok(())
        } else {
            Err(Fault::new(format!("{value} is not a {name}")))
        }
    }

    fn matches(&self, of: &Type, value: &Value) -> Result<(), Fault> {
        match of {
            Type::Name(name) => self.check(name, value),
            Type::Text(text) if value == text => Ok(()),
            Type::Text(text) => Err(Fault::new(format!("{value} is not {text:?}"))),
            Type::Choice(choices) => self.one_of(choices, value),
            Type::Size(of, bytes) => {
                self.matches(of, value)?;
                let limit = 1_u128 << (8 * bytes);
                let is_right = match value {
                    Value::String(text) => text.len() == *bytes as usize,
                    _ => value
                        .as_u64()
                        .is_some_and(|value| u128::from(value) < limit),
                };
                if is_right {
                    return Ok(());
                }
                Err(Fault::new(format!("{value} has not {bytes} bytes")))
            }
            Type::Regexp(of, pattern) => {
                self.matches(of, value)?;
                if value.as_str().is_some_and(|text| pattern.is_match(text)) {
                    return Ok(());
                }
                Err(Fault::new(format!("{value} does not match {pattern}")))
            }
            Type::Map(entries) => match value {
                Value::Object(members) => self.map(entries, members),
                _ => Err(Fault::new(format!("{value} is not an object"))),
            },
            Type::Array(entries) => match value {
                Value::Array(values) => self.array(entries, values),
                _ => Err(Fault::new(format!("{value} is not an array"))),
            },
        }
    }

    fn one_of(&self, choices: &[Type], value: &Value) -> Result<(), Fault> {
        let mut faults = Vec::new();
        for choice in choices {
            match self.matches(choice, value) {
                Ok(()) => return Ok(()),
                Err(fault) => faults.push(fault),
            }
        }
        Err(faults
            .into_iter()
            .max_by_key(Fault::rank)
            .unwrap_or_else(|| Fault::new("no type is allowed".to_owned())))
    }

    fn map(&self, entries: &[Entry], members: &Map<String, Value>) -> Result<(), Fault> {
        let mut declared = Vec::new();
        self.flatten(entries, &mut declared);
        for entry in &declared {
            if let Kind::Member(key, of) = &entry.kind {
                match members.get(key) {
                    Some(value) => self.matches(of, value).map_err(|fault| Fault {
                        is_other_type: fault.is_other_type || is_literal(of),
                        ..fault.within(key)
                    })?,
                    None if entry.min > 0 => {
                        return Err(Fault::new("it is missing".to_owned()).within(key));
                    }
                    None => {}
                }
            }
        }
        for (key, value) in members {
            let is_named =
                |entry: &&Entry| matches!(&entry.kind, Kind::Member(name, _) if name == key);
            if declared.iter().any(is_named) {
                continue;
            }
            let any_key = declared.iter().find_map(|entry| match &entry.kind {
                Kind::AnyKey(of) => Some(of),
                _ => None,
            });
            let of = any_key
                .ok_or_else(|| Fault::new("the schema has no such field".to_owned()).within(key))?;
            (self.matches(of, value)).map_err(|fault| fault.within(key))?;
        }
        Ok(())
    }

    /// Adds entries, and those of the rules that they unwrap.
    fn flatten<'r>(&'r self, entries: &'r [Entry], declared: &mut Vec<&'r Entry>) {
        for entry in entries {
            match &entry.kind {
                Kind::Unwrapped(name) => match self.get(name) {
                    Some(Type::Choice(only)) if only.len() == 1 => match &only[0] {
                        Type::Map(inner) => self.flatten(inner, declared),
                        other => panic!("~{name} is not a map: {other:?}"),
                    },
                    other => panic!("~{name} is not a map: {other:?}"),
                },
                Kind::Value(of) => panic!("a map has a value without a key: {of:?}"),
                Kind::Member(..) | Kind::AnyKey(_) | Kind::Socket => declared.push(entry),
            }
        }
    }

    /// All arrays of these schemas have elements of one type.
    fn array(&self, entries: &[Entry], values: &[Value]) -> Result<(), Fault> {
        let [Entry { min, max, kind }] = entries else {
            panic!("an array of several types: {entries:?}");
        };
        let Kind::Value(of) = kind else {
            panic!("an array with keys: {kind:?}");
        };
        for (index, value) in values.iter().enumerate() {
            (self.matches(of, value)).map_err(|fault| fault.within(&index))?;
        }
        if (*min..=*max).contains(&values.len()) {
            return Ok(());
        }
        Err(Fault::new(format!("{} elements", values.len())))
    }
}

/// Whether a type is one of several literal texts.
fn is_literal(of: &Type) -> bool {
    match of {
        Type::Text(_) => true,
        Type::Choice(choices) => choices.iter().all(is_literal),
        _ => false,
    }
}
