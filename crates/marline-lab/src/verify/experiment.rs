//! Measurements by runs of experiments in the simulator.

use marline_link::Seed;

use super::probe::Measured;
use super::{Quantity, Subject};
use crate::scenario::{Backend, Experiment, Job, RunError};
use crate::sim::Simulator;

/// The metrics of the experiment of `subject`, on its link.
///
/// # Errors
/// It cannot be read, or fails.
pub(super) fn measure(subject: &Subject, seed: Seed) -> Result<Measured, RunError> {
    let text = format!(
        "title = {:?}\nlink = {:?}\n{}\n",
        subject.name,
        subject.link,
        subject.workload.unwrap_or_default()
    );
    let failed = |error| RunError::Failed(format!("{error}"));
    let experiment = Experiment::parse(&text, subject.name, &[]).map_err(failed)?;
    let Some(cell) = experiment.cells.first() else {
        return Ok(Measured::new());
    };
    let outcome = Simulator.run(&Job {
        experiment: subject.name.into(),
        variant: cell.variant.clone(),
        parameters: cell.parameters.clone(),
        repeat: 0,
        seed: seed.value(),
        settings: cell.settings.clone(),
        qlog: None,
        pcap: None,
        har: None,
        watch: false,
    })?;
    let found = Quantity::OF_EXPERIMENTS.into_iter();
    let found = found.filter_map(|(quantity, metric)| {
        let value = outcome.metrics.get(metric.name)?;
        Some((quantity, value * metric.factor))
    });
    Ok(found.collect())
}
