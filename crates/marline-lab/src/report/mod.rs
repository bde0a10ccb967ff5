//! From results to a page.
//!
//! A page is made from nothing but the files that [`run`](crate::run::run) left in a directory, so that it can be
//! made again at any time. What others published stands beside what was measured, never in its place.
//!
//! | file | what it shows |
//! | --- | --- |
//! | `data` | nothing: it reads, and knows which run belongs where |
//! | `names` | nothing: it names metrics and parameters, with units |
//! | `overview` | what ran, for how long |
//! | `claims` | whether it shows what it must |
//! | `published` | every published value beside ours |
//! | `improvements` | published improvements beside ours, as a picture |
//! | `distribution` | boxes and distributions of the metric of most interest |
//! | `ideal` | how far that is from the physical limit |
//! | `comparisons` | variants beside each other |
//! | `correlations` | metrics that may go together |
//! | `factors` | two parameters at once |
//! | `time_series` | single runs over time |
//! | `appendix` | runs without an outcome, settings, all numbers |

mod appendix;
mod claims;
mod comparisons;
mod correlations;
mod data;
mod distribution;
mod factors;
mod ideal;
mod improvements;
mod names;
mod overview;
mod points;
mod published;
mod time_series;

use std::path::{Path, PathBuf};

use marline_report::Report;

use crate::run::RunFailure;
use data::Evidence;

/// The name of the page in a directory of results.
const PAGE: &str = "report.html";

/// The page about the results in `directory`.
///
/// # Errors
/// There are no results yet, or what is there cannot be read.
pub fn page(directory: &Path) -> Result<Report, RunFailure> {
    Evidence::read(directory).map(|evidence| draw(&evidence))
}

/// Writes the page about the results in `directory` to `report.html` there, and says where that is.
///
/// # Errors
/// Those of [`page`], and the page cannot be written.
pub fn write(directory: &Path) -> Result<PathBuf, RunFailure> {
    let html = page(directory)?.render();
    crate::run::write(directory, PAGE, html.as_bytes())?;
    Ok(directory.join(PAGE))
}

fn draw(evidence: &Evidence) -> Report {
    let sections = [
        overview::add,
        claims::add,
        published::add,
        distribution::add,
        comparisons::add,
        correlations::add,
        factors::add,
        time_series::add,
        appendix::add,
    ];
    let page = Report::new(evidence.results.title.as_str());
    let page = sections
        .into_iter()
        .fold(page, |page, add| add(page, evidence));
    let Evidence { results, .. } = evidence;
    page.footer(results.seed, &results.digest, &evidence.command())
}

#[cfg(test)]
mod tests;
