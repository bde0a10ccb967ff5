//! `marline lab run`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use marline_lab::emu;
use marline_lab::run::{self, Options, Results, RunFailure, Shard};
use marline_lab::scenario::{BackendKind, Experiment};
use marline_report::units;

use super::backends::Backends;
use super::progress::Bar;
use super::{experiments, table, worst};
use crate::failure::{Failure, print_message};

/// Run an experiment
///
/// An experiment is a TOML file: links, variants, a workload, repeats. Its results are written to the directory
/// of --out: results.json, runs.csv with a row for each run, and report.html. An interrupted experiment
/// continues where it stopped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline lab run bundle/plain --quick\n  \
    marline lab run train.toml --set link.rtt=200ms --out train\n  \
    marline lab run bundle/plain --shard 1/2 --out part1    on one machine, and 2/2 on another, then\n  \
    marline lab merge part1 part2 --out whole\n  \
    marline lab run default/controllers --worst 10 --worst-of cubic\n  \
    marline lab run history/dumbbell --quick --backend kernel    beside the kernel's TCP, in virtual time\n\n\
    The table has a row for each variant at each point of the sweep: n runs, the median of the first metric with its \
    95 % confidence interval, its mean where the paper has one, its 95th percentile, and its coefficient of variation \
    (CoV). The column `published` has the value in the paper that the experiment repeats, if there is one; published \
    values of other metrics, and those that stand for several points, follow below. The digest is a hash of all metrics of all runs: \
    equal digests mean that every run was the same, on whichever machine.")]
pub(crate) struct Arguments {
    /// The experiment's name, as in `marline lab list`, or a file that ends in .toml
    #[arg(value_name = "ID|FILE.toml")]
    experiment: String,

    /// Where to run it; variants that name their backend keep it [default: as in the experiment]
    #[arg(long, value_enum)]
    backend: Option<Where>,

    /// The seed of all randomness [default: as in the experiment]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// The number of runs of each cell [default: as in the experiment]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeats: Option<u32>,

    /// Run each cell only a few times
    #[arg(long)]
    quick: bool,

    /// Change a setting by its dotted key, as link.loss=3% or slow_start_exit='hybrid(factor=0.25)'; repeatable.
    /// `marline reference settings` lists those of connections
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Runs in parallel [default: one per core; in real time one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    jobs: Option<u32>,

    /// The directory for results [default: lab-results/ID, with - for / in it]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Discard the runs in the directory instead of continuing
    #[arg(long)]
    fresh: bool,

    /// Run one of several parts, to be merged later
    #[arg(long, value_name = "PART/PARTS")]
    shard: Option<Shard>,

    /// Write a qlog file for each connection into DIR/qlog
    #[arg(long)]
    qlog: bool,

    /// Write delivered packets of all links, and dropped ones with the reason, into DIR/pcap
    #[arg(long)]
    pcap: bool,

    /// Write an HTTP Archive (HAR 1.2) of each page load into this directory
    #[arg(long, value_name = "DIR")]
    har: Option<PathBuf>,

    /// Also print the N points at which a variant is furthest from what the links would allow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "json")]
    worst: Option<u32>,

    /// The variant of --worst [default: the first]
    #[arg(long, value_name = "VARIANT", requires = "worst")]
    worst_of: Option<String>,

    /// Print the results as JSON
    #[arg(long)]
    json: bool,

    /// The directory of experiments [default: `experiments` in this directory or above, else those that this
    /// program contains]
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    /// Our endpoints alone, in virtual time
    Sim,
    /// With the kernel's TCP and any programs between network namespaces, in real time
    Emu,
    /// The same in a kernel of its own, in virtual time; `make kernel` builds it
    Kernel,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sets = &arguments.set;
    let mut experiment = experiments::load(
        &arguments.experiment,
        arguments.experiments.as_deref(),
        sets,
    )?;
    if let Some(variant) = &arguments.worst_of {
        worst::check(&experiment, variant)?;
    }
    if let Some(chosen) = arguments.backend {
        experiment.run_in(match chosen {
            Where::Sim => BackendKind::Sim,
            Where::Emu => BackendKind::Emu,
            Where::Kernel => BackendKind::Kernel,
        });
        if experiment.cells.iter().all(|cell| cell.own_backend) {
            print_message("every variant names its backend, which --backend does not change");
        }
    }
    if experiment.uses(BackendKind::Emu) {
        // Only a process with a single thread can enter a user namespace.
        emu::become_capable()?;
    }
    if let Some(seed) = arguments.seed {
        experiment.seed = seed;
    }
    if let Some(repeats) = arguments.repeats {
        experiment.repeats = repeats;
        experiment.quick_repeats = repeats;
    }
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| Path::new("lab-results").join(experiment.id.replace('/', "-")));
    if let Some(results) = execute(&experiment, arguments, &out)? {
        super::report::write(&out)?;
        results.require_runs().map_err(|error| failure(&error))?;
    }
    Ok(())
}

/// Executes the runs; `None` if other parts are missing for results.
fn execute(
    experiment: &Experiment,
    arguments: &Arguments,
    out: &Path,
) -> Result<Option<Results>, Failure> {
    let stop = super::stop_switch()?;
    let backends = Backends::of(experiment, &stop)?;
    let options = Options {
        jobs: arguments.jobs.unwrap_or(0) as usize,
        quick: arguments.quick,
        out: Some(out.to_owned()),
        fresh: arguments.fresh,
        shard: arguments.shard,
        qlog: arguments.qlog,
        pcap: arguments.pcap,
        har: arguments.har.clone(),
        watch: true,
        commit: option_env!("MARLINE_COMMIT"),
        stop: Some(&stop),
    };
    let mut bar = Bar::new(&experiment.id);
    let finished = run::run(experiment, &backends, &options, &mut |progress| {
        bar.show(progress);
    });
    drop(bar);
    let finished = finished.map_err(|error| failure(&error))?;
    if finished.resumed > 0 {
        errln!(
            "done before: {}",
            units::counted(finished.resumed as u64, "run")
        );
    }
    let Some(results) = finished.results else {
        errln!("this part is done; join all with `marline lab merge DIR... --out DIR`");
        return Ok(None);
    };
    if arguments.json {
        super::print_json(&results)?;
    } else {
        table::print(&results);
    }
    if let Some(count) = arguments.worst {
        worst::print(&results, arguments.worst_of.as_deref(), count as usize);
    }
    table::warn(&results);
    Ok(Some(results))
}

/// Distinguishes errors of usage from others.
fn failure(failure: &RunFailure) -> Failure {
    match failure {
        RunFailure::OtherExperiment { .. }
        | RunFailure::OtherSettings { .. }
        | RunFailure::OtherProgram { .. }
        | RunFailure::OtherInputs { .. }
        | RunFailure::Input { .. }
        | RunFailure::Unsupported { .. } => Failure::Usage(failure.to_string()),
        _ => Failure::Failed(failure.to_string()),
    }
}
