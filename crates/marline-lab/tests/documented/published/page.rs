//! The page.

use std::collections::BTreeMap;

use marline_lab::run;
use marline_lab::stats::Statistic;

use super::super::cited;
use super::super::excerpt::Excerpt;
use super::super::runs;
use super::super::table::line;
use super::index::{Entry, Number};
use super::ours::{Measured, Ours, ours};
use super::verdict::{Verdict, over, verdict};

const HEAD: &str = "\
# Every published number beside ours

## In short

- Of {{all | numbers}} numbers and orders that five papers publish, {{all | held}} held, {{all | not held}} did not, and {{all | undecided}} are undecided by their intervals.
- Of those without an interval {{all | undecided, held by value}} hold by value, and {{all | undecided, not held by value}} do not.
- {{all | not comparable}} are not comparable and {{all | not reproduced}} not reproduced, each with the reason; {{all | not yet run}} have a command and no committed run.
- The papers have pages of their own, with what was found beyond their numbers: [bundles](bundle-results.md), [history](history-results.md),
  [several paths](multipath-results.md), [pools](pipes-results.md), and of the thesis [versions of HTTP](web-results.md), [Wi-Fi](wifi-results.md) and
  [flows](flows-results.md).
- [Verdicts](verdicts.md) says when a claim of an experiment counts as met.
- No figure on this page is entered by hand.

![What became of the published numbers](results.svg)

";

const METHOD: &str = "
## How it was made

All numbers and orders that the five papers publish as results, in the order of the papers, with ours and a verdict. The page is written by
`REGENERATE=1 cargo test -p marline-lab --all-features --test documented` from three things: the published tables
(`experiments/published`), an index that says where ours of each number is and how the verdict is reached
(`experiments/published/index`), and the committed results of runs (`docs/results`, `python/tests`).

Ours has its 95 % interval in brackets; where several points of a sweep stand against one number, it is from the smallest to the largest. What a
paper states without a number is \"stated\". Commands are `marline lab run ID` with the IDs in the last column; tables at the end of each paper have their
seeds, repeats and durations.

- **held**: the whole interval of ours is within 10 % of the published number; for gains, the whole interval is at least the published gain. Of a gain of
  0 % or \"about 0 %\" it is within 3 points, of a published loss within 10 %, as a gain contradicts both. Where an experiment states the number as a claim, the claim's verdict counts.
- **undecided**: the interval is inside in part.
- **undecided, held by value**, and **not held by value**: the committed results have no interval, and the value alone would have this verdict.
- **not held**: the whole interval is outside.
- **not comparable**: ours is another quantity, and the row says why.
- **not yet run**: the command measures it, and the committed results do not have it yet.
- **not reproduced**: nothing here measures it, and the row says why.

Not all kept results are of the program of the latest commit, whose values and digests may differ; where the build is not kept, the history of the
file in `docs/results` says since when it is there ([what to compare](artifact.md#which-build-made-a-kept-result)).

Settings that papers give (links, sizes, parameters) are not results, and are not listed.
";

/// The text of the page.
pub(crate) fn text(numbers: &[Number], excerpts: &BTreeMap<String, Excerpt>) -> String {
    let rows: Vec<_> = numbers
        .iter()
        .map(|number| Row::of(number, excerpts))
        .collect();
    let mut papers: Vec<&str> = numbers.iter().map(|number| number.paper.as_str()).collect();
    papers.dedup();
    let mut text = HEAD.to_owned();
    let names = Verdict::ALL
        .iter()
        .map(|verdict| verdict.text().replace("**", ""));
    let names: Vec<_> = names.collect();
    let names = names.iter().map(String::as_str);
    text += &line(["paper", "numbers"].into_iter().chain(names));
    text += &line(std::iter::repeat_n("---", 2 + Verdict::ALL.len()));
    let of_paper = |paper: &str| -> Vec<&Row<'_>> {
        rows.iter()
            .filter(|row| row.number.paper == paper)
            .collect()
    };
    let counts = |name: &str, rows: &[&Row<'_>]| {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let counts = Verdict::ALL.map(|verdict| count(verdict).to_string());
        let cells = [name.to_owned(), rows.len().to_string()];
        let cells: Vec<_> = cells.into_iter().chain(counts).collect();
        line(cells.iter().map(String::as_str))
    };
    for paper in &papers {
        let rows = of_paper(paper);
        let title = &rows[0].number.title;
        let name = format!("[{title}](#{})", anchor(title));
        text += &counts(&name, &rows);
    }
    text += &counts("all", &rows.iter().collect::<Vec<_>>());
    text += METHOD;
    for paper in &papers {
        let rows = of_paper(paper);
        text += &format!("\n## {}\n", rows[0].number.title);
        let mut places: Vec<&str> = Vec::new();
        for row in &rows {
            if !places.contains(&row.number.place.as_str()) {
                places.push(&row.number.place);
            }
        }
        for place in places {
            let rows = rows.iter().filter(|row| row.number.place == place);
            text += &section(place, &rows.copied().collect::<Vec<_>>());
        }
        let runs = rows.iter().filter_map(|row| {
            let id = row.number.ours.results.as_deref()?;
            Some((id, row.excerpt?))
        });
        let runs: BTreeMap<_, _> = runs.collect();
        if !runs.is_empty() {
            text += "\nRuns:\n\n";
            text += &runs::table(&runs);
        }
    }
    cited::filled(&text).unwrap_or_else(|error| panic!("results.md: {error}"))
}

/// The rows of a figure or table. What is said of all of them is said once.
fn section(place: &str, rows: &[&Row<'_>]) -> String {
    let first = rows.first().map_or(&[][..], |row| row.remarks.as_slice());
    let of_all = |remark: &&String| rows.iter().all(|row| row.remarks.contains(remark));
    let common: Vec<_> = match rows {
        [_] => Vec::new(),
        _ => first.iter().filter(of_all).collect(),
    };
    let mut text = format!("\n### {place}\n\n");
    if !common.is_empty() {
        let common: Vec<_> = common.iter().map(|remark| remark.as_str()).collect();
        text += &format!("Of all rows: {}.\n\n", common.join("; "));
    }
    text += &line(["quantity", "published", "ours", "verdict", "run"].into_iter());
    text += &line(["---"; 5].into_iter());
    let lines = rows.iter().map(|row| row.line(&common));
    text + &lines.collect::<String>()
}

/// The anchor of a heading, as GitHub and the book make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

struct Row<'a> {
    number: &'a Number,
    excerpt: Option<&'a Excerpt>,
    shown: String,
    verdict: Verdict,
    remarks: Vec<String>,
}

impl<'a> Row<'a> {
    fn of(number: &'a Number, excerpts: &'a BTreeMap<String, Excerpt>) -> Self {
        let entry = &number.ours;
        let excerpt = entry.results.as_ref().and_then(|id| excerpts.get(id));
        let mut row = Self {
            number,
            excerpt,
            shown: String::new(),
            verdict: Verdict::NotReproduced,
            remarks: Vec::new(),
        };
        if let Some(reason) = &entry.not_reproduced {
            row.remarks.push(reason.clone());
        } else if let Some(text) = &entry.claim {
            row.judge_claim(text);
        } else {
            let found = row.measure();
            match (&entry.not_comparable, &entry.not_run) {
                (Some(reason), _) => {
                    row.verdict = Verdict::NotComparable;
                    row.remarks.push(reason.clone());
                }
                (None, Some(reason)) => {
                    row.verdict = Verdict::NotRun;
                    row.remarks.push(reason.clone());
                }
                (None, None) => row.judge(found.as_ref()),
            }
        }
        row.remarks.extend(entry.note.clone());
        row
    }

    /// Takes the verdict of the claim `text`.
    fn judge_claim(&mut self, text: &str) {
        let Some(excerpt) = self.excerpt else {
            self.verdict = Verdict::NotRun;
            return;
        };
        let claim = excerpt.claims.iter().find(|claim| claim.text == text);
        let claim = claim.unwrap_or_else(|| {
            panic!("{} has no claim \"{text}\"", excerpt.experiment);
        });
        self.shown = format!("{} of {} comparisons", claim.met, claim.of);
        if claim.needed != claim.of {
            self.shown += &format!(", {} needed", claim.needed);
        }
        self.verdict = match claim.verdict {
            Some(run::Verdict::Holds) => Verdict::Held,
            Some(run::Verdict::DoesNotHold) => Verdict::NotHeld,
            Some(run::Verdict::Undecided | run::Verdict::NotKnown) => Verdict::Undecided,
            None if claim.met >= claim.needed => Verdict::HeldByValue,
            None => Verdict::NotHeldByValue,
        };
    }

    /// Finds ours, and shows it.
    fn measure(&mut self) -> Option<Ours> {
        let entry = &self.number.ours;
        if entry.results.is_none() && entry.file.is_none() {
            return None;
        }
        let found = ours(entry, self.excerpt)?;
        let shown = found.measured.iter().map(|&one| match entry.exact {
            true => Measured {
                interval: None,
                ..one
            },
            false => one,
        });
        let shown: Vec<_> = shown.collect();
        self.shown = match (entry.between, shown.as_slice()) {
            // What quantiles allow has no best value.
            (
                Some(_),
                [
                    Measured {
                        interval: Some([low, high]),
                        ..
                    },
                ],
            ) => {
                format!("{} to {} {}", digits(*low), digits(*high), self.number.unit)
            }
            _ => show(&shown, &self.number.unit),
        };
        if let Some(statistic) = found.instead_of {
            self.remarks.push(format!(
                "of medians: the {} is not kept yet",
                name(statistic)
            ));
        }
        Some(found)
    }

    fn judge(&mut self, found: Option<&Ours>) {
        let entry = &self.number.ours;
        let Some(found) = found else {
            assert!(
                entry.results.is_some(),
                "{} {}: neither a comparison nor a reason",
                self.number.place,
                self.number.quantity
            );
            self.verdict = Verdict::NotRun;
            return;
        };
        let published = entry.bound.or_else(|| self.number.text.parse().ok());
        let published = published.unwrap_or_else(|| {
            panic!(
                "{}: \"{}\" needs a bound",
                self.number.place, self.number.text
            )
        });
        let each = found
            .measured
            .iter()
            .map(|&one| verdict(entry.rule, entry.tolerance, published, one));
        self.verdict = over(&each.collect::<Vec<_>>());
    }

    /// The row without the remarks that are `common` to all.
    fn line(&self, common: &[&String]) -> String {
        let Number {
            quantity,
            text,
            is_about,
            unit,
            ours,
            ..
        } = self.number;
        let (quantity, published) = match (text.parse::<f64>(), &ours.claim) {
            (Ok(_), _) => {
                let about = if *is_about { "about " } else { "" };
                (
                    quantity.clone(),
                    format!("{about}{}", with_unit(text, unit)),
                )
            }
            (Err(_), Some(_)) => (text.clone(), "stated".to_owned()),
            (Err(_), None) => (format!("{text}: {quantity}"), "stated".to_owned()),
        };
        let mut verdict = self.verdict.text().to_owned();
        let own = self
            .remarks
            .iter()
            .filter(|remark| !common.contains(remark));
        let own: Vec<_> = own.map(String::as_str).collect();
        if !own.is_empty() {
            verdict += &format!(": {}", own.join("; "));
        }
        let run = match (&ours.results, &ours.command) {
            (Some(id), _) => format!("`{id}`"),
            (None, Some(command)) => format!("`{command}`"),
            (None, None) => String::new(),
        };
        let cells = [quantity.as_str(), &published, &self.shown, &verdict, &run];
        line(cells.into_iter()).replace("|  |", "| |")
    }
}

const fn name(statistic: Statistic) -> &'static str {
    statistic.name()
}

fn with_unit(number: &str, unit: &str) -> String {
    let number = number.replace('-', "−");
    match unit {
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

/// Three digits, and no more than the number needs.
fn digits(value: f64) -> String {
    let text = match value.abs() {
        size if size < 1e9 && value.fract() == 0.0 => format!("{value}"),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    let is_zero = text
        .trim_start_matches('-')
        .chars()
        .all(|c| ['0', '.'].contains(&c));
    match is_zero {
        true => "0".to_owned(),
        false => text.replace('-', "−"),
    }
}

pub(crate) fn show(measured: &[Measured], unit: &str) -> String {
    let unit = match unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    if let [one] = measured {
        let interval = one.interval.map(|ends| {
            let [low, high] = ends.map(digits);
            format!(" ({low} to {high})")
        });
        return format!(
            "{}{unit}{}",
            digits(one.value),
            interval.unwrap_or_default()
        );
    }
    let values = measured.iter().map(|one| one.value);
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    format!("{} to {}{unit}", digits(low), digits(high))
}

/// The entry needs the results of an experiment.
impl Entry {
    pub(crate) fn experiment(&self) -> Option<&str> {
        self.results.as_deref()
    }
}
