//! Errors in link specifications.

use std::fmt;

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
        /// The most similar key, if any.
        nearest: Option<String>,
    },
    /// The preset is unknown.
    UnknownPreset {
        /// The most similar name, if any.
        nearest: Option<&'static str>,
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
        /// The keys that can.
        known: Vec<&'static str>,
        /// The most similar of them, if any.
        nearest: Option<&'static str>,
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
            Self::UnknownKey { nearest } => {
                f.write_str("unknown key")?;
                did_you_mean(f, nearest.as_deref())
            }
            Self::UnknownPreset { nearest } => {
                f.write_str("unknown preset")?;
                did_you_mean(f, *nearest)
            }
            Self::NoValue => {
                f.write_str("no value; keys are written `key=value`, a preset's name comes first")
            }
            Self::Twice => f.write_str("is set more than once"),
            Self::UnitMissing { value, units } => {
                let with: Vec<_> = units.iter().map(|unit| format!("{value}{unit}")).collect();
                write!(f, "`{value}` has no unit; write {}", or(&with))
            }
            Self::UnknownUnit { unit, units } => {
                write!(f, "unknown unit `{unit}`; known here: {}", or(units))?;
                did_you_mean(f, nearest(unit, units.iter().copied()))
            }
            Self::NotANumber { value } => write!(f, "`{value}` is not a number"),
            Self::Above100 { value } => write!(f, "{value} is above 100%"),
            Self::OutOfRange { value, range } => write!(f, "{value} is out of range: {range}"),
            Self::UnknownName { value, known } => {
                write!(f, "unknown name `{value}`; known here: {}", or(known))?;
                did_you_mean(f, nearest(value, known.iter().copied()))
            }
            Self::Conflict { with } => write!(f, "cannot be combined with `{with}`"),
            Self::Needs { key } => write!(f, "requires `{key}`"),
            Self::NotOf {
                part,
                known,
                nearest,
            } => {
                write!(f, "not a key of {part}; known here: {}", or(known))?;
                did_you_mean(f, *nearest)
            }
            Self::BothDirections => f.write_str("cannot be set per direction"),
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

/// The candidate with the smallest edit distance, if that is at most a third of the word's length.
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

/// Edit distance: insertions, deletions, substitutions and transpositions of adjacent letters.
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
