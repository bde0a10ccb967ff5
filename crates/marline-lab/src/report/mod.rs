//! Reports of experiments, as self-contained pages.
//!
//! A page is made only from the files that [`run`](crate::run::run) wrote to a directory, so that it can be
//! made again at any time. Published values are shown next to measured ones, never instead of them.
//!
//! | module | content |
//! | --- | --- |
//! | `data` | the input: results and runs |
//! | `names` | names and units of metrics and parameters |
//! | `glance` | what a person gains: a sentence, and bars on a linear axis |
//! | `answer` | which variant is better, how much, and how sure that is; without comparisons, which is the best (`answer::best`) |
//! | `verdict` | whether an improvement is sure |
//! | `overview` | what the experiment shows, and what qualifies it |
//! | `claims` | verdicts on the claims |
//! | `published` | published values compared with measured ones |
//! | `improvements` | charts of published and measured improvements |
//! | `distribution` | boxes and distributions of the main metric |
//! | `ideal` | the ratio to the physical limit |
//! | `comparisons` | comparisons of variants |
//! | `correlations` | correlations of metrics |
//! | `factors` | heat maps over two parameters |
//! | `time_series` | typical runs over time |
//! | `panels` | the time series of such a run |
//! | `outliers` | where axes end |
//! | `appendix` | failed and invalid runs, settings, all statistics |
//! | `counters` | what ran, and for how long |

mod answer;
mod appendix;
mod claims;
mod comparisons;
mod correlations;
mod counters;
mod data;
mod distribution;
mod factors;
mod glance;
mod ideal;
mod improvements;
mod names;
mod outliers;
mod overview;
mod panels;
mod points;
mod published;
mod time_series;
mod verdict;

use std::path::{Path, PathBuf};

use marline_report::Report;

use crate::run::RunFailure;
use data::ReportData;

/// The name of the page in a directory of results.
const PAGE: &str = "report.html";

/// The page about the results in `directory`.
///
/// # Errors
/// There are no results yet, or they cannot be read.
pub fn page(directory: &Path) -> Result<Report, RunFailure> {
    ReportData::read(directory).map(|data| draw(&data))
}

/// Writes the page about the results in `directory` to `report.html` there, and returns the path of the file.
///
/// # Errors
/// Those of [`page`], and the page cannot be written.
pub fn write(directory: &Path) -> Result<PathBuf, RunFailure> {
    let html = page(directory)?.render();
    crate::run::write(directory, PAGE, html.as_bytes())?;
    Ok(directory.join(PAGE))
}

fn draw(data: &ReportData) -> Report {
    let sections = [
        glance::add,
        answer::add,
        overview::add,
        claims::add,
        published::add,
        distribution::add,
        comparisons::add,
        correlations::add,
        factors::add,
        time_series::add,
        appendix::add,
        counters::add,
    ];
    let page = Report::new(data.results.title.as_str());
    let page = sections.into_iter().fold(page, |page, add| add(page, data));
    let ReportData { results, .. } = data;
    page.footer(
        results.seed,
        &results.digest,
        &data.command(),
        &data.plan.build(),
    )
}

#[cfg(test)]
mod tests;
