//! Why a text is no link.

use std::fmt;

/// What is wrong with the description of a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SpecError {
    /// The key, as it was written; or the word that should have been one.
    pub key: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no such key.
    UnknownKey {
        /// The key that looks most like it, if one does.
        nearest: Option<String>,
    },
    /// There is no such preset.
    UnknownPreset {
        /// The name that looks most like it, if one does.
        nearest: Option<&'static str>,
    },
    /// It has no value.
    NoValue,
    /// It is there twice.
    Twice,
    /// The number has no unit.
    UnitMissing {
        /// The number.
        value: String,
        /// The units it may have.
        units: Vec<&'static str>,
    },
    /// The unit is none, or none of this key.
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The units it may have.
        units: Vec<&'static str>,
    },
    /// It is no number.
    NotANumber {
        /// What it is.
        value: String,
    },
    /// It is larger than a whole.
    Above100 {
        /// The value.
        value: String,
    },
    /// It is too small or too large.
    OutOfRange {
        /// The value.
        value: String,
        /// What would do.
        range: &'static str,
    },
    /// The value is no name that is known here.
    UnknownName {
        /// The value.
        value: String,
        /// What would do.
        known: Vec<&'static str>,
    },
    /// It does not go with another key.
    Conflict {
        /// The other.
        with: &'static str,
    },
    /// It means nothing without another key.
    Needs {
        /// The other.
        key: &'static str,
    },
    /// The key is the same for both directions.
    BothDirections,
    /// The model cannot be made of these numbers.
    Model {
        /// Why not.
        reason: String,
    },
    /// Its file cannot be used.
    File {
        /// The file.
        name: String,
        /// Why not.
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
            Self::UnknownKey { nearest } => {
                f.write_str("unknown key")?;
                did_you_mean(f, nearest.as_deref())
            }
            Self::UnknownPreset { nearest } => {
                f.write_str("unknown preset")?;
                did_you_mean(f, *nearest)
            }
            Self::NoValue => {
                f.write_str("no value; keys are written `key=value`, a preset's name stands first")
            }
            Self::Twice => f.write_str("is there twice"),
            Self::UnitMissing { value, units } => {
                let with: Vec<_> = units.iter().map(|unit| format!("{value}{unit}")).collect();
                write!(f, "`{value}` has no unit; write {}", or(&with))
            }
            Self::UnknownUnit { unit, units } => {
                write!(f, "unknown unit `{unit}`; known here: {}", or(units))?;
                did_you_mean(f, nearest(unit, units.iter().copied()))
            }
            Self::NotANumber { value } => write!(f, "`{value}` is no number"),
            Self::Above100 { value } => write!(f, "{value} is above 100%"),
            Self::OutOfRange { value, range } => write!(f, "{value} is out of range: {range}"),
            Self::UnknownName { value, known } => {
                write!(f, "unknown name `{value}`; known here: {}", or(known))?;
                did_you_mean(f, nearest(value, known.iter().copied()))
            }
            Self::Conflict { with } => write!(f, "does not go with `{with}`"),
            Self::Needs { key } => write!(f, "means nothing without `{key}`"),
            Self::BothDirections => f.write_str("is the same for both directions"),
            Self::Model { reason } => f.write_str(reason),
            Self::File { name, reason } => write!(f, "{name}: {reason}"),
        }
    }
}

fn did_you_mean(f: &mut fmt::Formatter<'_>, nearest: Option<&str>) -> fmt::Result {
    match nearest {
        Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
        None => Ok(()),
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

/// The candidate that takes the fewest letters to change, if that is not most of them.
pub(super) fn nearest<S: AsRef<str>>(
    word: &str,
    candidates: impl IntoIterator<Item = S>,
) -> Option<S> {
    let word: Vec<_> = word.chars().take(40).flat_map(char::to_lowercase).collect();
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate.as_ref()), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= word.len().max(3) / 3)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove, replace, or swap with their neighbor.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<_> = b.chars().flat_map(char::to_lowercase).collect();
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
