//! Errors in scenarios, with their places and remedies.

use std::fmt;

pub(super) use marline::settings::{nearest_first, quote, unknown};

/// An error in a scenario: file, line and key, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ScenarioError {
    /// The file, as named by the caller.
    pub file: String,
    /// Its place in the file.
    pub place: Place,
    /// The problem and its remedy.
    pub problem: String,
}

impl ScenarioError {
    fn text(&self) -> String {
        let Self {
            file,
            place,
            problem,
        } = self;
        match place {
            Place::File => format!("{file}: {problem}"),
            Place::Set(set) => format!("--set {set}: {problem}"),
            Place::Line { line, key } => {
                let separator = if key.is_empty() { "" } else { ": " };
                format!("{file}:{line}: {key}{separator}{problem}")
            }
        }
    }
}

/// The place of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// No single place: something is missing, or the file as a whole is invalid.
    #[default]
    File,
    /// In the file.
    Line {
        /// The line, from 1.
        line: usize,
        /// Table and key, as in `[variant.bbr] cc`.
        key: String,
    },
    /// In an override, given as `KEY=VALUE` on the command line.
    Set(String),
}

impl Place {
    /// The problem of a key that was set before, at this place.
    pub(super) fn twice(&self) -> String {
        let here = match self {
            Self::Line { line, .. } => format!(", in line {line} as well"),
            Self::Set(_) | Self::File => String::new(),
        };
        format!("this key is there twice{here}; keep one of them")
    }
}

/// An error in a file that the caller names.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) place: Place,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn new(place: &Place, text: impl fmt::Display) -> Self {
        Self {
            place: place.clone(),
            text: text.to_string(),
        }
    }

    pub(super) fn in_file(self, file: &str) -> ScenarioError {
        ScenarioError {
            file: file.to_owned(),
            place: self.place,
            problem: self.text,
        }
    }
}
