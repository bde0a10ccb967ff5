//! Merges the parts of an experiment that were run separately.

use std::path::{Path, PathBuf};

use super::differences::summary_of_differences;
use super::files::{PLAN, RESULTS, RUNS, TABLE, write, write_json};
use super::inputs::difference;
use super::journal::{StoredRuns, line, read};
use super::{Plan, Record, Results, RunFailure, summarize, table};

/// Merges the parts in `directories` into `out`, with the results of a single start of all runs.
pub fn merge(directories: &[PathBuf], out: &Path) -> Result<Results, RunFailure> {
    let mut whole: Option<(Plan, &PathBuf)> = None;
    let mut records: Vec<Record> = Vec::new();
    for directory in directories {
        let StoredRuns {
            plan,
            records: part,
        } = read(directory)?;
        match &whole {
            Some((first, place)) if first.settings_hash != plan.settings_hash => {
                return Err(RunFailure::Unlike {
                    first: (*place).clone(),
                    second: directory.clone(),
                    differing: summary_of_differences(first, &plan),
                });
            }
            Some((first, _)) => {
                if let Some(differing) = difference(&first.inputs, &plan.inputs) {
                    return Err(RunFailure::OtherInputs {
                        directory: directory.clone(),
                        differing,
                    });
                }
                // Machines have builds of their own, but of one source.
                if (&first.version, &first.commit) != (&plan.version, &plan.commit) {
                    return Err(RunFailure::OtherProgram {
                        directory: directory.clone(),
                        found: plan.build(),
                        own: first.build(),
                    });
                }
            }
            None => whole = Some((plan, directory)),
        }
        records.extend(part);
    }
    let Some((plan, _)) = whole else {
        return Err(RunFailure::Incomplete {
            missing: 0,
            total: 0,
        });
    };
    records.sort_by_key(|record| record.run);
    records.dedup_by_key(|record| record.run);
    std::fs::create_dir_all(out).map_err(|cause| RunFailure::file(out, cause))?;
    let mut lines = Vec::new();
    for record in &records {
        lines.extend(line(record).map_err(|cause| RunFailure::file(&out.join(RUNS), cause))?);
    }
    let results = complete(&plan, &records)?;
    write_json(out, PLAN, &plan)?;
    write(out, RUNS, &lines)?;
    write_results(out, &plan, &records, &results)?;
    Ok(results)
}

/// Summarizes the runs in `directory` again. Their duration is taken from the existing results.
pub fn rebuild(directory: &Path) -> Result<Results, RunFailure> {
    let StoredRuns { plan, records } = read(directory)?;
    let mut results = complete(&plan, &records)?;
    if let Ok(old) = Results::read(directory) {
        (results.wall_s, results.resumed) = (old.wall_s, old.resumed);
    }
    write_results(directory, &plan, &records, &results)?;
    Ok(results)
}

fn complete(plan: &Plan, records: &[Record]) -> Result<Results, RunFailure> {
    let total = plan.runs();
    if records.len() < total {
        let missing = total - records.len();
        return Err(RunFailure::Incomplete { missing, total });
    }
    Ok(summarize(plan, records))
}

fn write_results(
    directory: &Path,
    plan: &Plan,
    records: &[Record],
    results: &Results,
) -> Result<(), RunFailure> {
    write_json(directory, RESULTS, results)?;
    write(directory, TABLE, &table::csv(plan, records))
}
