//! What is wrong with a scenario, where, and what to do.

use std::fmt;

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

/// Lists of known words stop helping when they are longer than this, if a near word is found.
const LISTED: usize = 12;

/// `unknown {what} "{word}"`, with the nearest known word if one is near, and those that are known.
pub(super) fn unknown<'a>(
    what: &str,
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut words: Vec<&str> = Vec::new();
    for name in known {
        if !words.contains(&name) {
            words.push(name);
        }
    }
    let nearest = words
        .iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), *name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance < name.len() && *distance <= (name.len() / 3).max(1));
    match nearest {
        Some((_, name)) if words.len() > LISTED => {
            format!("unknown {what} \"{word}\"; did you mean {name}?")
        }
        Some((_, name)) => format!(
            "unknown {what} \"{word}\"; did you mean {name}? known: {}",
            words.join(", ")
        ),
        None => format!("unknown {what} \"{word}\"; known: {}", words.join(", ")),
    }
}
