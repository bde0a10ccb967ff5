//! Finding and loading experiments.

use std::path::{Path, PathBuf};

use marline_lab::scenario::{self, Entry, Experiment};

use crate::failure::Failure;

/// The directory of experiments: the given one, or `experiments` here or in a directory above.
pub(super) fn directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let here = std::env::current_dir().unwrap_or_default();
    let found = here
        .ancestors()
        .map(|directory| directory.join("experiments"))
        .find(|directory| directory.is_dir());
    found.ok_or_else(|| {
        Failure::Usage(
            "there is no directory `experiments` here or above; name one with --experiments DIR, or \
             give a scenario's file"
                .to_owned(),
        )
    })
}

/// All experiments, by name.
pub(super) fn list(given: Option<&Path>) -> Result<Vec<Entry>, Failure> {
    let directory = directory(given)?;
    scenario::list(&directory).map_err(|error| {
        let directory = directory.display();
        Failure::Failed(format!("cannot read {directory}: {error}"))
    })
}

/// The experiment with this name, or in this file if the name ends in `.toml`.
pub(super) fn load(
    name: &str,
    given: Option<&Path>,
    sets: &[String],
) -> Result<Experiment, Failure> {
    let (path, id) = if name.ends_with(".toml") {
        let path = PathBuf::from(name);
        let stem = path.file_stem().unwrap_or_default();
        let id = stem.to_string_lossy().into_owned();
        (path, id)
    } else {
        let entries = list(given)?;
        let Some(entry) = entries.iter().find(|entry| entry.id == name) else {
            let known: Vec<_> = entries.iter().map(|entry| entry.id.as_str()).collect();
            return Err(Failure::Usage(format!(
                "there is no experiment {name}; known: {}; a scenario of your own ends in .toml",
                known.join(", ")
            )));
        };
        (entry.path.clone(), entry.id.clone())
    };
    Experiment::load(&path, &id, sets).map_err(|error| Failure::Usage(error.to_string()))
}
