//! The input of a report: results and runs.

use std::path::Path;

use crate::run::{CellResult, Plan, Record, Results, RunFailure, StoredRuns, read};
use crate::scenario::BackendKind;

use super::names::Quantity;
use super::points::Points;

/// The results of an experiment, and its runs by point and variant.
pub(super) struct ReportData {
    pub(super) results: Results,
    pub(super) plan: Plan,
    /// The points by name.
    pub(super) points: Points,
    /// Runs in the order of their repeats; cells in the order of those in the results.
    runs: Vec<Vec<Record>>,
}

impl ReportData {
    /// Reads the files in `directory`.
    pub(super) fn read(directory: &Path) -> Result<Self, RunFailure> {
        let StoredRuns { plan, records } = read(directory)?;
        let results = Results::read(directory)?;
        let variants = plan.variants.len();
        let mut runs = vec![Vec::new(); plan.points.len() * variants];
        for record in records {
            let variant = plan
                .variants
                .iter()
                .position(|name| *name == record.variant);
            let cell = variant.and_then(|variant| runs.get_mut(record.point * variants + variant));
            if let Some(cell) = cell {
                cell.push(record);
            }
        }
        Ok(Self {
            points: Points::of(&plan.points),
            results,
            plan,
            runs,
        })
    }

    /// The metric of most interest.
    pub(super) fn main_metric(&self) -> &str {
        self.plan.main_metric()
    }

    /// Indices and names of the variants, in the order of the scenario.
    pub(super) fn variants(&self) -> impl DoubleEndedIterator<Item = (usize, &str)> {
        self.plan.variants.iter().map(String::as_str).enumerate()
    }

    /// The index of the variant called `name`.
    pub(super) fn variant(&self, name: &str) -> Option<usize> {
        self.plan.variants.iter().position(|known| known == name)
    }

    /// The runs of a variant at a point.
    pub(super) fn runs(&self, point: usize, variant: usize) -> &[Record] {
        let cell = self.runs.get(point * self.plan.variants.len() + variant);
        cell.map_or(&[], Vec::as_slice)
    }

    /// The values of `metric` in the runs that count.
    pub(super) fn values(&self, point: usize, variant: usize, metric: &str) -> Vec<f64> {
        let runs = self.runs(point, variant).iter();
        runs.filter(|run| run.counts())
            .filter_map(|run| run.metrics.get(metric).copied())
            .collect()
    }

    /// The same in base units (seconds, bytes, bits per second), for charts.
    pub(super) fn samples(&self, point: usize, variant: usize, metric: &str) -> Vec<f64> {
        let quantity = Quantity::of(metric);
        let values = self.values(point, variant, metric).into_iter();
        values.map(|value| quantity.base(value)).collect()
    }

    /// The results of a variant at a point.
    pub(super) fn cell(&self, point: usize, variant: usize) -> Option<&CellResult> {
        let (name, parameters) = (
            self.plan.variants.get(variant)?,
            self.plan.points.get(point)?,
        );
        let mut cells = self.results.cells.iter();
        cells.find(|cell| cell.variant == *name && cell.parameters == *parameters)
    }

    /// The command that repeats all runs.
    pub(super) fn command(&self) -> String {
        if let Some(command) = &self.plan.command {
            return command.clone();
        }
        let Results {
            experiment,
            backend,
            seed,
            repeats,
            ..
        } = &self.results;
        // Built-in experiments are in directories; other scenarios are files.
        let mut command = match experiment.contains('/') {
            true => format!("marline lab run {experiment}"),
            false => format!("marline lab run {experiment}.toml"),
        };
        let written = self.results.settings["scenario"]["backend"].as_str();
        // With several backends, the variants choose theirs.
        let is_one = BackendKind::NAMES.iter().any(|(name, _)| name == backend);
        if is_one && written.unwrap_or(BackendKind::default().name()) != backend {
            command.push_str(&format!(" --backend {backend}"));
        }
        command.push_str(&format!(" --seed {seed} --repeats {repeats}"));
        for set in &self.plan.sets {
            // A shell does not interpret text in single quotes.
            command.push_str(&format!(" --set '{}'", set.replace('\'', "'\\''")));
        }
        command
    }
}
