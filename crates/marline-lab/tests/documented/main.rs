//! Pages of results are made of templates and of the results of runs.
//!
//! A template `docs/templates/NAME.md` makes `docs/NAME.md`, in which no directive remains. It writes what a table shows
//! in a comment, and the page has the table in its place:
//!
//! ```text
//! <!-- table
//! results = "multipath/small"
//! rows = ["rr", "hbes"]
//! [[column]]
//! name = "mean, 160 ms"
//! metric = "streams_mean_s"
//! unit = "ms"
//! where = { "paths.2.rtt" = "160ms" }
//! -->
//! ```
//!
//! A row is a variant, or a `[[row]]` with a `name`, a `variant` and a `where` of its own. A column is the `statistic`
//! (by default the median) of a metric, from its smallest to its largest value at the points that `where` selects; or
//! the value that `of` defines, over the medians at these points; a `variant` of its own replaces the row's. `<!--
//! claims` with `results` alone makes the verdicts on all claims, and `<!-- worst` with `results`, `variant`, `metric`,
//! `ideal` and `count` the points at which the metric is the largest multiple of the ideal. `<!-- choices` with `of` alone
//! makes what the paper leaves open, of `experiments/published/index/choices/OF.toml`. `{{ROW | COLUMN}}` in a sentence is
//! a cell of the page's tables, and `{{value results = "web/servers", variant = "nginx", unit = "s" }}` what a table of one row
//! and one column would have, with its keys; without a `metric` it is `completion_s`. Other figures with units are allowed
//! in sentences if they are settings of the experiments that the page shows, or stand in `docs/templates/typed.toml`. A
//! typed table with figures has `<!-- printed by: COMMAND -->` or `<!-- settings -->` before it.
//!
//! The numbers come from `docs/results/ID.json`, which contain only the values that the pages show.
//!
//! ```sh
//! marline lab run multipath/small
//! REGENERATE=1 cargo test -p marline-lab --all-features --test documented
//! ```
//!
//! The second takes over all results that are in `lab-results` (or the directory in `LAB_RESULTS`), and writes the pages.
//! `docs/results.md` has no template; see [`published`].

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cited;
mod excerpt;
mod page;
mod prose;
mod published;
mod runs;
mod table;
mod worst;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use marline_lab::scenario::Experiment;

use excerpt::{Excerpt, Wanted};
use page::Page;
use published::Number;

const REGENERATE: &str = "REGENERATE=1 cargo test -p marline-lab --all-features --test documented";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages that have a template.
fn pages() -> Vec<Page> {
    let docs = root().join("docs");
    let mut paths: Vec<_> = std::fs::read_dir(docs.join("templates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    paths.sort();
    let page = |template: PathBuf| {
        let text = std::fs::read_to_string(&template).unwrap();
        Page::of(docs.join(template.file_name().unwrap()), &text)
    };
    paths.into_iter().map(page).collect()
}

/// The page of all published numbers, which is written as a whole.
fn results_page() -> PathBuf {
    root().join("docs/results.md")
}

/// The values that the pages show of each experiment, and those that stand beside published numbers.
fn wanted(pages: &[Page], numbers: &[Number]) -> BTreeMap<String, Wanted> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for block in pages.iter().flat_map(Page::blocks) {
        block.add_to(&mut wanted);
    }
    for number in numbers {
        if let Some(id) = number.ours.experiment() {
            let wanted = wanted.entry(id.to_owned()).or_default();
            number.ours.add_to(wanted);
        }
    }
    wanted
}

fn excerpt_path(id: &str) -> PathBuf {
    root().join("docs/results").join(format!("{id}.json"))
}

fn experiment(id: &str) -> Experiment {
    let path = root().join("experiments").join(format!("{id}.toml"));
    Experiment::load(&path, id, &[]).unwrap()
}

/// With `REGENERATE`, takes over results and writes the pages, once and before any test reads
/// them.
fn prepare() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        if std::env::var_os("REGENERATE").is_none() {
            return;
        }
        let pages = pages();
        let numbers = published::numbers();
        let wanted = wanted(&pages, &numbers);
        take_over(&wanted);
        let excerpts = excerpts(&wanted);
        for page in &pages {
            std::fs::write(page.path(), page.made(&excerpts)).unwrap();
        }
        std::fs::write(results_page(), published::text(&numbers, &excerpts)).unwrap();
    });
}

/// Takes over the results of the runs that are there.
fn take_over(wanted: &BTreeMap<String, Wanted>) {
    let results = std::env::var_os("LAB_RESULTS").map(PathBuf::from);
    let results = results.unwrap_or_else(|| root().join("lab-results"));
    for (id, wanted) in wanted {
        let directory = results.join(id.replace('/', "-"));
        if directory.join("results.json").exists() {
            Excerpt::take(&directory, wanted).write(&excerpt_path(id));
        }
    }
}

/// The results that are kept. Those of a published number may not be there yet.
fn excerpts(wanted: &BTreeMap<String, Wanted>) -> BTreeMap<String, Excerpt> {
    let kept = wanted.keys().filter(|id| excerpt_path(id).exists());
    kept.map(|id| (id.clone(), Excerpt::read(&excerpt_path(id))))
        .collect()
}

#[test]
fn pages_are_what_their_templates_make_of_the_results() {
    prepare();
    let pages = pages();
    assert!(!pages.is_empty());
    let excerpts = excerpts(&wanted(&pages, &[]));
    for page in &pages {
        let name = page.path().file_name().unwrap().display();
        assert!(
            page.kept() == page.made(&excerpts),
            "docs/{name} is not what docs/templates/{name} makes of the results; change the template, then run: {REGENERATE}"
        );
    }
}

/// Fails where a published number has neither a comparison nor a reason, and where the page has a verdict that the
/// results do not have.
#[test]
fn every_published_number_has_the_verdict_of_the_results() {
    prepare();
    let numbers = published::numbers();
    let excerpts = excerpts(&wanted(&[], &numbers));
    let text = std::fs::read_to_string(results_page()).unwrap();
    assert!(
        text == published::text(&numbers, &excerpts),
        "docs/results.md is stale; run: {REGENERATE}"
    );
}

#[test]
fn cited_results_are_runs_of_the_experiments_as_they_are() {
    prepare();
    let pages = pages();
    let results_page = std::fs::read_to_string(results_page()).unwrap();
    for (id, wanted) in wanted(&pages, &published::numbers()) {
        let experiment = experiment(&id);
        if !excerpt_path(&id).exists() {
            continue;
        }
        let excerpt = Excerpt::read(&excerpt_path(&id));
        assert_eq!(excerpt.experiment, id);
        if excerpt.repeats != experiment.repeats {
            let command = format!("`marline lab run {id} --repeats {}`", excerpt.repeats);
            let mut texts = pages.iter().map(Page::kept).chain([results_page.clone()]);
            let is_named = texts.any(|text| text.contains(&command));
            assert!(is_named, "no page says that its results are of {command}");
        }
        assert_eq!(excerpt.seed, experiment.seed, "the seed of {id}");
        assert_eq!(
            excerpt.points.len(),
            experiment.points.len(),
            "points of {id}"
        );
        let claims: BTreeSet<_> = excerpt.claims.iter().map(|claim| &claim.text).collect();
        let texts: BTreeSet<_> = experiment.musts.iter().map(|must| &must.text).collect();
        assert_eq!(claims, texts, "claims of {id}");
        for variant in &wanted.variants {
            let known = experiment.variants.iter().any(|known| **known == **variant);
            assert!(known, "{id} has no variant {variant}");
        }
    }
}

#[test]
fn pages_of_results_say_which_reasons_were_not_tested() {
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with("results.md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for guess in ["likely", "probably", "presumably", "perhaps"] {
            assert!(
                !text.contains(guess),
                "{name} says \"{guess}\": test the reason, or call it an untested hypothesis"
            );
        }
    }
}

#[test]
fn no_results_are_kept_that_no_page_shows() {
    prepare();
    let wanted = wanted(&pages(), &published::numbers());
    let mut directories = vec![root().join("docs/results")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let is_wanted = wanted.keys().any(|id| excerpt_path(id) == path);
            assert!(is_wanted, "no page shows {}", path.display());
        }
    }
}
