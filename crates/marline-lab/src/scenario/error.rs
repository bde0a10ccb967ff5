//! What is wrong with a scenario, where, and what to do.

use std::fmt;

pub(super) use marline::settings::unknown;

/// What is wrong with a scenario: file, line and key, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// Where in it.
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
    /// Nowhere: it is missing, or the file is at fault as a whole.
    #[default]
    File,
    /// In the file.
    Line {
        /// The line, from 1.
        line: usize,
        /// Table and key, as in `[variant.bbr] cc`.
        key: String,
    },
    /// In an override given beside the file, as `KEY=VALUE`.
    Set(String),
}

/// What is wrong, in a file that whoever reads this knows.
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
