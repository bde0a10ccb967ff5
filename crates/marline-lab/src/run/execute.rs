//! Runs on many threads. What they give depends neither on their number nor on who is first.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::files::{RESULTS, TABLE, write, write_json};
use super::journal::Journal;
use super::{Plan, Record, Results, RunFailure, summarize, table};
use crate::scenario::{Backend, BackendKind, Experiment, Job, Outcome, RunError};

/// How to run.
#[derive(Debug, Default)]
pub struct Options<'a> {
    /// Threads; 0 is one for each core in virtual time, and one in real time, where runs would
    /// disturb each other.
    pub jobs: usize,
    /// Whether to take [`Experiment::quick_repeats`], and intervals of fewer draws.
    pub quick: bool,
    /// Where to keep runs and results; `None` keeps nothing.
    pub out: Option<PathBuf>,
    /// Whether to forget what is in `out`.
    pub fresh: bool,
    /// The part of the runs to do; `None` is all.
    pub shard: Option<Shard>,
    /// Whether runs write qlog files, into `qlog/` of `out`.
    pub qlog: bool,
    /// Whether runs write captures, into `pcap/` of `out`.
    pub pcap: bool,
    /// Whether the first repeat of each cell collects series for pictures.
    pub watch: bool,
    /// Becomes true when to stop.
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
            .ok_or_else(|| format!("\"{text}\" is no part; write the third of eight as 3/8"))
    }
}

/// How far runs are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Runs that are done, those of an earlier start included.
    pub done: usize,
    /// Runs to be done.
    pub total: usize,
    /// Runs without an outcome among those done.
    pub failed: usize,
    /// How much longer it may take; `None` while nothing is known.
    pub left: Option<Duration>,
}

/// What came of a start.
#[derive(Debug)]
pub struct Finished {
    /// What the runs say together; `None` while parts of them are missing.
    pub results: Option<Results>,
    /// Runs that an earlier start had done.
    pub resumed: usize,
    /// Runs without an outcome.
    pub failed: usize,
}

/// Does the runs of `experiment` and says what they say together. `progress` is called from this
/// thread, at the start and after each run.
pub fn run(
    experiment: &Experiment,
    backend: &dyn Backend,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Finished, RunFailure> {
    let start = now();
    let plan = Plan::new(experiment, options.quick);
    let (mut journal, mut records) = match &options.out {
        Some(directory) => Journal::open(directory, &plan, options.fresh)?,
        None => (Journal::none(), Vec::new()),
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
    let mut told = Progress {
        done: resumed,
        total: resumed + pending.len(),
        failed: records
            .iter()
            .filter(|record| record.failed.is_some())
            .count(),
        left: None,
    };
    progress(told);
    let logs = directory(options, options.qlog, "qlog");
    let captures = directory(options, options.pcap, "pcap");
    let job = |run| {
        let (logs, captures) = (logs.as_deref(), captures.as_deref());
        plan.job(experiment, run, logs, captures, options.watch)
    };
    let real_time = experiment.uses(BackendKind::Emu);
    each(
        &pending,
        options,
        real_time,
        backend,
        &job,
        &mut |run, result| {
            let slot = plan.slot(run);
            let variant = &plan.variants[slot.variant];
            if let Err(RunError::Unsupported(reason)) = result {
                let variant = variant.clone();
                return Err(RunFailure::Unsupported { variant, reason });
            }
            let seed = plan.seed_of(slot.point, slot.repeat);
            let record = Record::new(run, slot, variant, seed, result);
            journal.append(&record)?;
            told.done += 1;
            told.failed += usize::from(record.failed.is_some());
            records.push(record);
            let (new, more) = (told.done - resumed, told.total - told.done);
            told.left = Some(
                now()
                    .duration_since(start)
                    .mul_f64(more as f64 / new as f64),
            );
            progress(told);
            Ok(())
        },
    )?;
    if told.done < told.total {
        return Err(RunFailure::Interrupted {
            done: told.done,
            total: told.total,
        });
    }
    let failed = told.failed;
    let results = if records.len() == plan.runs() {
        records.sort_by_key(|record| record.run);
        let mut results = summarize(&plan, &records);
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

fn directory(options: &Options<'_>, wanted: bool, name: &str) -> Option<PathBuf> {
    let out = options.out.as_ref().filter(|_| wanted)?;
    Some(out.join(name))
}

/// Does `pending` runs on threads, and hands each to `ended` on this one, until one of them fails to
/// be kept or somebody says stop; runs under way are then waited for, and kept.
fn each(
    pending: &[usize],
    options: &Options<'_>,
    real_time: bool,
    backend: &dyn Backend,
    job: &(dyn Fn(usize) -> Job + Sync),
    ended: &mut dyn FnMut(usize, Result<Outcome, RunError>) -> Result<(), RunFailure>,
) -> Result<(), RunFailure> {
    let next = AtomicUsize::new(0);
    let given_up = AtomicBool::new(false);
    let told_to_stop = || {
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
            let (next, given_up) = (&next, &given_up);
            scope.spawn(move || {
                while !given_up.load(Ordering::Relaxed) && !told_to_stop() {
                    let Some(&run) = pending.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        break;
                    };
                    if sender.send((run, attempt(backend, &job(run)))).is_err() {
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
                given_up.store(failure.is_err(), Ordering::Relaxed);
            }
        }
        failure
    })
}

/// One run; a panic is its failure, not everybody's.
fn attempt(backend: &dyn Backend, job: &Job) -> Result<Outcome, RunError> {
    catch_unwind(AssertUnwindSafe(|| backend.run(job))).unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .map(|words| (*words).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        let words = words.unwrap_or_else(|| "for a reason unknown".to_owned());
        Err(RunError::Failed(format!("panicked: {words}")))
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long runs take is told to whoever waits, and decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}
