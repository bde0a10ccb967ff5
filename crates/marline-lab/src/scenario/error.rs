//! Errors in scenarios: where they are, and what to do about them.

use std::fmt;

pub(super) use marline::settings::unknown;

/// An error in a scenario: file, line and key, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// Its place in the file.
    pub place: Place,
    /// What is wrong, and what to do.
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

/// Where a value was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// At no single place: something is missing, or the file is invalid as a whole.
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
    /// The problem of a key that was here before.
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
