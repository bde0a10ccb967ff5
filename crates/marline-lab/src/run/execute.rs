//! Executes runs on several threads. The results depend neither on the number of threads nor on the order in
//! which runs end.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::close_up::{self, FIRST_REPEATS};
use super::files::{RESULTS, TABLE, write, write_json};
use super::journal::{Continued, Journal};
use super::plan::Files;
use super::{Plan, Record, Results, RunFailure, summarize, table};
use crate::scenario::{Backend, BackendKind, Experiment, Job, Outcome, RunError};

/// The options of a run of an experiment.
#[derive(Debug, Default)]
pub struct Options<'a> {
    /// Threads; 0 stands for one per core in virtual time, and for one in real time, where parallel runs
    /// would affect each other.
    pub jobs: usize,
    /// Whether to use [`Experiment::quick_repeats`] and fewer resamples.
    pub quick: bool,
    /// The directory of runs and results; with `None`, nothing is written.
    pub out: Option<PathBuf>,
    /// Whether to discard the runs in `out`.
    pub fresh: bool,
    /// The part of the runs to do; `None` is all.
    pub shard: Option<Shard>,
    /// Whether runs write qlog files, into `qlog/` of `out`.
    pub qlog: bool,
    /// Whether runs write captures, into `pcap/` of `out`.
    pub pcap: bool,
    /// The directory of archives (HAR) of page loads, if they are wanted.
    pub har: Option<PathBuf>,
    /// Whether reports get close-ups: time series of the typical run of each cell, the one whose first metric is nearest
    /// to the median. In virtual time it is run again for that, when all have ended; in real time, and with a shard, the
    /// first repeats collect time series.
    pub watch: bool,
    /// The commit of which this program was built, if that is known.
    pub commit: Option<&'a str>,
    /// Set to true to stop.
    pub stop: Option<&'a AtomicBool>,
}

/// One of several parts of the runs, to be done on several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// Part `number` of `count`, from 1; `None` if there is no such part.
    pub fn new(number: usize, count: usize) -> Option<Self> {
        let index = number.checked_sub(1)?;
        (number <= count).then_some(Self { index, count })
    }

    fn has(self, run: usize) -> bool {
        run % self.count == self.index
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `3/8`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split_once('/')
            .and_then(|(number, count)| {
                Self::new(number.trim().parse().ok()?, count.trim().parse().ok()?)
            })
            .ok_or_else(|| format!("\"{text}\" is not a part; write the third of eight as 3/8"))
    }
}

/// The progress of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Finished runs, those of an earlier start included.
    pub done: usize,
    /// All runs, those of other parts excepted.
    pub total: usize,
    /// Runs without an outcome among those done.
    pub failed: usize,
    /// Estimated time left; `None` before the first run has ended.
    pub left: Option<Duration>,
}

/// The outcome of [`run`].
#[derive(Debug)]
pub struct Finished {
    /// The results of all runs; `None` while other parts of them are missing.
    pub results: Option<Results>,
    /// Runs that an earlier start had done.
    pub resumed: usize,
    /// Runs without an outcome.
    pub failed: usize,
}

/// Executes the runs of `experiment` and summarizes them. `progress` is called from this thread, at the start
/// and after each run.
pub fn run(
    experiment: &Experiment,
    backend: &dyn Backend,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Finished, RunFailure> {
    let start = now();
    let mut plan = Plan::new(experiment, options.quick)?;
    plan.commit = options.commit.map(str::to_owned);
    let Continued {
        mut journal,
        mut records,
    } = match &options.out {
        Some(directory) => Journal::open(directory, &plan, options.fresh)?,
        None => Continued {
            journal: Journal::none(),
            records: Vec::new(),
        },
    };
    let resumed = records.len();
    let mut left = vec![true; plan.runs()];
    for record in &records {
        left[record.run] = false;
    }
    let ours = |run: &usize| options.shard.is_none_or(|shard| shard.has(*run));
    let pending: Vec<_> = (0..plan.runs())
        .filter(|run| left[*run] && ours(run))
        .collect();
    let mut state = Progress {
        done: resumed,
        total: resumed + pending.len(),
        failed: records
            .iter()
            .filter(|record| record.failed.is_some())
            .count(),
        left: None,
    };
    progress(state);
    let files = Files {
        qlog: directory(options, options.qlog, "qlog"),
        pcap: directory(options, options.pcap, "pcap"),
        har: options.har.clone(),
    };
    let real_time = experiment.uses(BackendKind::Emu);
    let repeatable = !real_time && options.shard.is_none();
    let job = |run| {
        let watch = options.watch && !repeatable && plan.position(run).repeat < FIRST_REPEATS;
        plan.job(experiment, run, &files, watch)
    };
    run_all(
        &pending,
        options,
        real_time,
        backend,
        &job,
        &mut |run, result| {
            let position = plan.position(run);
            let variant = &plan.variants[position.variant];
            if let Err(RunError::Unsupported(reason)) = result {
                let variant = variant.clone();
                return Err(RunFailure::Unsupported { variant, reason });
            }
            if result == Err(RunError::Interrupted) {
                return Ok(());
            }
            let seed = plan.seed_of(position.point, position.repeat);
            let record = Record::new(run, position, variant, seed, result);
            journal.append(&record)?;
            state.done += 1;
            state.failed += usize::from(record.failed.is_some());
            records.push(record);
            let (new, more) = (state.done - resumed, state.total - state.done);
            state.left = Some(
                now()
                    .duration_since(start)
                    .mul_f64(more as f64 / new as f64),
            );
            progress(state);
            Ok(())
        },
    )?;
    if state.done < state.total {
        return Err(RunFailure::Interrupted {
            done: state.done,
            total: state.total,
        });
    }
    let failed = state.failed;
    let results = if records.len() == plan.runs() {
        records.sort_by_key(|record| record.run);
        let mut results = summarize(&plan, &records);
        if options.watch && repeatable {
            let missing = close_up::missing(&plan, &records, &results);
            let again = |run| plan.job(experiment, run, &Files::default(), true);
            run_all(
                &missing,
                options,
                real_time,
                backend,
                &again,
                &mut |run, result| watched(&mut journal, &mut records[run], result),
            )?;
        }
        results.wall_s = now().duration_since(start).as_secs_f64();
        results.resumed = resumed;
        if let Some(directory) = &options.out {
            write_json(directory, RESULTS, &results)?;
            write(directory, TABLE, &table::csv(&plan, &records))?;
        }
        Some(results)
    } else {
        None
    };
    Ok(Finished {
        results,
        resumed,
        failed,
    })
}

/// Adds the time series of a run that was repeated to its record.
fn watched(
    journal: &mut Journal,
    record: &mut Record,
    result: Result<Outcome, RunError>,
) -> Result<(), RunFailure> {
    let outcome = result.unwrap_or_default();
    // A different outcome would be that of another run.
    if outcome.metrics != record.metrics {
        return Ok(());
    }
    record.series = outcome.series;
    journal.append(record)
}

fn directory(options: &Options<'_>, wanted: bool, name: &str) -> Option<PathBuf> {
    let out = options.out.as_ref().filter(|_| wanted)?;
    Some(out.join(name))
}

/// Executes the `pending` runs on threads, and passes each result to `ended` on this one, until `ended` fails
/// or [`Options::stop`] is set; runs in progress are then completed, or end as [`RunError::Interrupted`].
fn run_all(
    pending: &[usize],
    options: &Options<'_>,
    real_time: bool,
    backend: &dyn Backend,
    job: &(dyn Fn(usize) -> Job + Sync),
    ended: &mut dyn FnMut(usize, Result<Outcome, RunError>) -> Result<(), RunFailure>,
) -> Result<(), RunFailure> {
    let next = AtomicUsize::new(0);
    let aborted = AtomicBool::new(false);
    let is_stopped = || {
        options
            .stop
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
    };
    let threads = match options.jobs {
        0 if real_time => 1,
        0 => thread::available_parallelism().map_or(1, NonZero::get),
        jobs => jobs,
    };
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.min(pending.len()) {
            let sender = sender.clone();
            let (next, aborted) = (&next, &aborted);
            scope.spawn(move || {
                while !aborted.load(Ordering::Relaxed) && !is_stopped() {
                    let Some(&run) = pending.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    let outcome = without_panic(|| backend.run(&job(run)));
                    if sender.send((run, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut failure = Ok(());
        for (run, result) in receiver {
            if failure.is_ok() {
                failure = ended(run, result);
                aborted.store(failure.is_err(), Ordering::Relaxed);
            }
        }
        failure
    })
}

/// One run; a panic is a failure of this run only.
pub(crate) fn without_panic<T>(run: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        let message = message.unwrap_or_else(|| "for a reason unknown".to_owned());
        Err(RunError::Failed(format!("panicked: {message}")))
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the duration of runs is reported, and decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}
