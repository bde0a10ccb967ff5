//! The runs of an experiment: their order, threads, files and results.
//!
//! A directory of results holds `plan.json` (the plan), `runs.jsonl` (one line for each finished run, from
//! which an interrupted experiment continues), `runs.csv` (the same as a table) and `results.json` (the
//! summary of all runs).

pub(crate) mod close_up;
mod compare;
mod differences;
mod digest;
mod execute;
mod failure;
mod files;
mod inputs;
mod journal;
mod merge;
mod must;
mod plan;
mod record;
mod results;
mod shared;
mod summarize;
mod table;
mod worst;

pub use compare::{Change, Changes, MustChange, compare};
pub use differences::SettingDifference;
#[cfg(target_os = "linux")]
pub(crate) use execute::without_panic;
pub use execute::{Finished, Options, Progress, Shard, run};
pub use failure::RunFailure;
pub(crate) use files::{is_results, write};
pub use inputs::Inputs;
pub use journal::{StoredRuns, read};
pub use merge::{merge, rebuild};
pub use must::{Corrected, MustResult, Verdict};
pub use plan::Plan;
pub use record::Record;
pub use results::{CellResult, ComparisonResult, CorrelationResult, PublishedResult, Results};
pub use shared::{PublishedAt, shared_parameters};
pub(crate) use summarize::compare_cells;
pub use summarize::summarize;
pub use worst::Worst;

#[cfg(test)]
mod tests;
