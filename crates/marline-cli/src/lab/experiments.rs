//! Finding and loading experiments.

use std::path::{Path, PathBuf};

use marline::settings::unknown;
use marline_lab::scenario::{self, Entry, Experiment, ScenarioError};

use crate::failure::Failure;

/// An experiment that can be loaded by its name.
pub(super) enum Known {
    /// In a directory.
    File(Entry),
    /// In this program.
    Embedded(&'static str),
}

impl Known {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::File(entry) => &entry.id,
            Self::Embedded(id) => id,
        }
    }

    /// Reads it, with overrides as `KEY=VALUE`.
    pub(super) fn load(&self, sets: &[String]) -> Result<Experiment, ScenarioError> {
        match self {
            Self::File(entry) => Experiment::load(&entry.path, &entry.id, sets),
            Self::Embedded(id) => Experiment::load_embedded(id, sets),
        }
    }
}

/// The directory of experiments: the given one, or `experiments` here or in a directory above.
fn directory(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(given) = given {
        return Some(given.to_owned());
    }
    let here = std::env::current_dir().unwrap_or_default();
    here.ancestors()
        .map(|directory| directory.join("experiments"))
        .find(|directory| directory.is_dir())
}

/// All experiments, by name: those of the directory if there is one, else those of this program.
pub(super) fn list(given: Option<&Path>) -> Result<Vec<Known>, Failure> {
    let Some(directory) = directory(given) else {
        let known = scenario::embedded().into_iter();
        return Ok(known.map(Known::Embedded).collect());
    };
    let entries = scenario::list(&directory).map_err(|error| {
        let directory = directory.display();
        Failure::Failed(format!("cannot read {directory}: {error}"))
    })?;
    Ok(entries.into_iter().map(Known::File).collect())
}

/// The experiment with this name, or in this file if the name ends in `.toml`.
pub(super) fn load(
    name: &str,
    given: Option<&Path>,
    sets: &[String],
) -> Result<Experiment, Failure> {
    let loaded = if name.ends_with(".toml") {
        let path = Path::new(name);
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        Experiment::load(path, &id, sets)
    } else {
        let known = list(given)?;
        let Some(found) = known.iter().find(|known| known.id() == name) else {
            let file = Path::new(name).with_extension("toml");
            if file.is_file() {
                let file = file.display();
                return Err(Failure::Usage(format!(
                    "unknown experiment \"{name}\"; did you mean the file {file}?"
                )));
            }
            let unknown = unknown("experiment", name, known.iter().map(Known::id));
            return Err(Failure::Usage(format!(
                "{unknown}; a scenario of your own ends in .toml"
            )));
        };
        found.load(sets)
    };
    loaded.map_err(|error| Failure::Usage(error.to_string()))
}
