//! The text of an experiment, from which another process can read one of its cells.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{Place, Problem};
use super::experiment::read_cell;
use super::{ScenarioError, Settings, Value};

/// The source of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    text: String,
    id: String,
    sets: Vec<String>,
    directory: Option<PathBuf>,
    /// The file, as the caller named it.
    file: String,
}

impl Source {
    pub(super) fn new(
        text: &str,
        id: &str,
        sets: &[String],
        directory: Option<&Path>,
        file: &str,
    ) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            id: id.to_owned(),
            sets: sets.to_vec(),
            directory: directory.map(Path::to_owned),
        }
    }

    /// The TOML.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The experiment's ID.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The overrides, as `KEY=VALUE`.
    pub fn sets(&self) -> &[String] {
        &self.sets
    }

    /// The directory in which published tables are searched first.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The file and the first line in which `name` stands, or the file alone if an override has it.
    pub(crate) fn place_of(&self, name: &str) -> String {
        match self.text.lines().position(|line| line.contains(name)) {
            Some(index) => format!("{}:{}", self.file, index + 1),
            None => self.file.clone(),
        }
    }

    /// The settings of `variant` at the point with these parameters, as in the experiment before
    /// [`Experiment::run_in`](super::Experiment::run_in).
    ///
    /// # Errors
    /// There is no such variant or point.
    pub fn settings(
        &self,
        variant: &str,
        parameters: &BTreeMap<String, Value>,
    ) -> Result<Settings, ScenarioError> {
        let missing = || Problem::new(&Place::File, format!("there is no such run of {variant}"));
        read_cell(self, variant, parameters)
            .and_then(|settings| settings.ok_or_else(missing))
            .map_err(|problem| problem.in_file(&self.id))
    }
}
