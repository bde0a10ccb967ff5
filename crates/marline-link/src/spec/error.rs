//! Errors in link specifications.

use std::fmt;

use marline_settings::advice;

/// An error in a link specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SpecError {
    /// The key as written, or the word in its place.
    pub key: String,
    /// The error.
    pub problem: Problem,
}

/// Kinds of errors in a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The key is unknown.
    UnknownKey {
        /// Which are known.
        advice: String,
    },
    /// The preset is unknown.
    UnknownPreset {
        /// Which are known.
        advice: String,
    },
    /// The key has no value.
    NoValue,
    /// The key occurs more than once.
    Twice,
    /// The number lacks a unit.
    UnitMissing {
        /// The number.
        value: String,
        /// The permitted units.
        units: Vec<&'static str>,
    },
    /// The unit is unknown or not permitted for the key.
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The permitted units.
        units: Vec<&'static str>,
    },
    /// The value is not a number.
    NotANumber {
        /// The value.
        value: String,
    },
    /// The share exceeds 100 %.
    Above100 {
        /// The value.
        value: String,
    },
    /// The value is out of range.
    OutOfRange {
        /// The value.
        value: String,
        /// The permitted range.
        range: &'static str,
    },
    /// The value is not one of the permitted names.
    UnknownName {
        /// The value.
        value: String,
        /// The permitted names.
        known: Vec<&'static str>,
    },
    /// The key cannot be combined with another one.
    Conflict {
        /// The other key.
        with: &'static str,
    },
    /// The key requires another one.
    Needs {
        /// The other key.
        key: &'static str,
    },
    /// The key cannot be set for a part of a channel.
    NotOf {
        /// The part.
        part: &'static str,
        /// Which can.
        advice: String,
    },
    /// The key cannot be set per direction.
    BothDirections,
    /// The radio model rejects the parameters.
    Model {
        /// The reason.
        reason: String,
    },
    /// The file is unusable.
    File {
        /// The file.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl Problem {
    pub(super) fn at(self, key: impl Into<String>) -> SpecError {
        SpecError {
            key: key.into(),
            problem: self,
        }
    }

    pub(super) fn not_a_number(value: &str) -> Self {
        Self::NotANumber {
            value: value.to_owned(),
        }
    }

    pub(super) fn out_of_range(value: &str, range: &'static str) -> Self {
        Self::OutOfRange {
            value: value.to_owned(),
            range,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { advice } => write!(f, "unknown key; {advice}"),
            Self::UnknownPreset { advice } => write!(f, "unknown preset; {advice}"),
            Self::NoValue => {
                f.write_str("no value; keys are written `key=value`, a preset's name comes first")
            }
            Self::Twice => f.write_str("is set more than once"),
            Self::UnitMissing { value, units } => {
                let with: Vec<_> = units.iter().map(|unit| format!("{value}{unit}")).collect();
                write!(f, "`{value}` has no unit; write {}", or(&with))
            }
            Self::UnknownUnit { unit, units } => {
                let advice = advice(unit, units.iter().copied());
                write!(f, "unknown unit `{unit}`; {advice}")
            }
            Self::NotANumber { value } => write!(f, "`{value}` is not a number"),
            Self::Above100 { value } => write!(f, "{value} is above 100%"),
            Self::OutOfRange { value, range } => write!(f, "{value} is out of range: {range}"),
            Self::UnknownName { value, known } => {
                let advice = advice(value, known.iter().copied());
                write!(f, "unknown name `{value}`; {advice}")
            }
            Self::Conflict { with } => write!(f, "cannot be combined with `{with}`"),
            Self::Needs { key } => write!(f, "requires `{key}`"),
            Self::NotOf { part, advice } => write!(f, "not a key of {part}; {advice}"),
            Self::BothDirections => f.write_str("cannot be set per direction"),
            Self::Model { reason } => f.write_str(reason),
            Self::File { name, reason } => write!(f, "{name}: {reason}"),
        }
    }
}

/// `a, b or c`.
fn or<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
