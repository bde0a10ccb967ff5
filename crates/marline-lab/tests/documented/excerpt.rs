//! The excerpt of an experiment's results that pages show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::path::Path;

use marline_lab::link::Seed;
use marline_lab::run::{self, ComparisonResult, Options, Results, StoredRuns};
use marline_lab::scenario::{Experiment, Job, Outcome, Value};
use marline_lab::stats::{self, Statistic};
use serde::{Deserialize, Serialize};

/// A parameter with more values than these places points in a space, and selects none.
const MAX_VALUES: usize = 40;

/// The values that pages show of an experiment.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) variants: BTreeSet<String>,
    pub(crate) metrics: BTreeSet<(String, Statistic)>,
    pub(crate) gains: BTreeSet<Pair>,
    pub(crate) published: BTreeSet<Measure>,
    pub(crate) published_gains: BTreeSet<Pair>,
    /// Measures whose 95 % intervals are shown.
    pub(crate) intervals: BTreeSet<Measure>,
    /// Correlations, as `variant, metric`, with the first metric of the experiment.
    pub(crate) correlations: BTreeSet<String>,
}

/// A statistic of a variant's metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Measure {
    pub(crate) variant: String,
    pub(crate) metric: String,
    pub(crate) statistic: Statistic,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            variant,
            metric,
            statistic,
        } = self;
        write!(f, "{variant}, {metric} {statistic}")
    }
}

/// A comparison of two variants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    /// The one that should be better.
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) metric: String,
    pub(crate) statistic: Statistic,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            a,
            b,
            metric,
            statistic,
        } = self;
        write!(f, "{a} over {b}, {metric} {statistic}")
    }
}

/// The part of an experiment's results that pages show.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Excerpt {
    pub(crate) experiment: String,
    pub(crate) backend: String,
    pub(crate) seed: u64,
    pub(crate) repeats: u32,
    /// Over the metrics of all runs.
    pub(crate) digest: String,
    /// The version of the program that made it, and the commit that it was built of; not known of runs that were taken over
    /// before this was kept.
    #[serde(default)]
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) commit: Option<String>,
    /// How long the runs took, in seconds; unknown where a start continued another.
    #[serde(default)]
    pub(crate) wall_s: Option<f64>,
    pub(crate) claims: Vec<Verdict>,
    /// The parameters of each point by which tables select.
    pub(crate) points: Vec<BTreeMap<String, Value>>,
    /// At each point: by variant, and by metric and statistic, as `completion_s median`.
    pub(crate) values: BTreeMap<String, BTreeMap<String, Vec<Option<f64>>>>,
    /// At each point: improvements in percent, and the ends of their 95 % intervals.
    #[serde(default)]
    pub(crate) gains: BTreeMap<String, Vec<Option<[f64; 3]>>>,
    /// At each point: the paper's values, and its improvements in percent.
    #[serde(default)]
    pub(crate) published: BTreeMap<String, Vec<Option<f64>>>,
    /// At each point: the 95 % intervals of values.
    #[serde(default)]
    pub(crate) intervals: BTreeMap<String, Vec<Option<[f64; 2]>>>,
    /// At each point: correlations, and the ends of their 95 % intervals.
    #[serde(default)]
    pub(crate) correlations: BTreeMap<String, Vec<Option<[f64; 3]>>>,
}

/// The verdict on a claim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) text: String,
    /// By the intervals of the comparisons; `None` for runs of which only the values are kept.
    #[serde(default)]
    pub(crate) verdict: Option<run::Verdict>,
    /// The verdict with a correction for many comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) corrected: Option<run::Verdict>,
    /// Comparisons that meet it with their whole intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sure: Option<usize>,
    /// Comparisons that do not, with their whole intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_met: Option<usize>,
    /// Comparisons whose values meet it.
    pub(crate) met: usize,
    /// Comparisons that have to meet it.
    pub(crate) needed: usize,
    /// All.
    pub(crate) of: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<String>,
}

fn key(metric: &str, statistic: Statistic) -> String {
    format!("{metric} {statistic}")
}

impl Excerpt {
    /// The part of the results in `directory` that is `wanted`.
    pub(crate) fn take(directory: &Path, wanted: &Wanted) -> Self {
        let results = &Results::read(directory).unwrap();
        let runs = run::read(directory).unwrap();
        let mut points: Vec<&BTreeMap<String, Value>> = Vec::new();
        for cell in &results.cells {
            if points.last() != Some(&&cell.parameters) {
                points.push(&cell.parameters);
            }
        }
        let mut distinct: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (name, value) in points.iter().copied().flatten() {
            distinct.entry(name).or_default().insert(value.to_string());
        }
        let selects = |name: &str| distinct[name].len() <= MAX_VALUES;
        let mut values: BTreeMap<String, BTreeMap<String, Vec<Option<f64>>>> = BTreeMap::new();
        for variant in &wanted.variants {
            for (metric, statistic) in &wanted.metrics {
                let at = points.iter().map(|point| {
                    let mut cells = results.cells.iter();
                    let cell = cells
                        .find(|cell| cell.variant == *variant && cell.parameters == **point)?;
                    let value = statistic.of(cell.metrics.get(metric)?)?;
                    // The rounding error is below the precision of all tables.
                    format!("{value:.5e}").parse().ok()
                });
                let metrics = values.entry(variant.clone()).or_default();
                metrics.insert(key(metric, *statistic), at.collect());
            }
        }
        let gains = wanted.gains.iter().map(|pair| {
            let at = points.iter().map(|point| gain(results, pair, point));
            (pair.to_string(), at.collect())
        });
        let gains = gains.collect();
        let improvements = wanted.published_gains.iter().map(|pair| {
            let at = points
                .iter()
                .map(|point| published_gain(results, pair, point));
            (pair.to_string(), at.collect::<Vec<_>>())
        });
        let measures = wanted.published.iter().map(|measure| {
            let at = points
                .iter()
                .map(|point| published(results, measure, point));
            (measure.to_string(), at.collect())
        });
        let published = improvements.chain(measures).collect();
        let intervals = wanted.intervals.iter().map(|measure| {
            let at = points
                .iter()
                .map(|point| interval(results, &runs, measure, point));
            (measure.to_string(), at.collect::<Vec<_>>())
        });
        let intervals = intervals.collect();
        let correlations = wanted.correlations.iter().map(|name| {
            let at = points.iter().map(|point| correlation(results, name, point));
            (name.clone(), at.collect::<Vec<_>>())
        });
        let correlations = correlations.collect();
        let claims = results.must.iter().map(|must| Verdict {
            text: must.text.clone(),
            verdict: Some(must.verdict),
            corrected: Some(must.corrected.verdict),
            sure: Some(must.met),
            not_met: Some(must.violations.len()),
            met: must.met_by_value,
            needed: must.needed,
            of: must.of,
            explanation: must.explanation.clone(),
        });
        let claims = claims.collect();
        let points = points.into_iter().map(|point| {
            let chosen = point.iter().filter(|(name, _)| selects(name));
            chosen.map(|(k, v)| (k.clone(), v.clone())).collect()
        });
        Self {
            experiment: results.experiment.clone(),
            backend: results.backend.clone(),
            seed: results.seed,
            repeats: results.repeats,
            digest: results.digest.clone(),
            version: Some(results.version.clone()).filter(|version| !version.is_empty()),
            commit: results.commit.clone(),
            wall_s: (results.resumed == 0).then(|| results.wall_s.round()),
            claims,
            points: points.collect(),
            values,
            gains,
            published,
            intervals,
            correlations,
        }
    }

    /// The build that made it, as `0.1.0, 1a2b3c4`, with at most 12 digits of the commit.
    pub(crate) fn build(&self) -> Option<String> {
        let commit = self.commit.as_deref();
        let commit = commit.map(|commit| commit.get(..12).unwrap_or(commit));
        let known = [self.version.as_deref(), commit].into_iter().flatten();
        let known: Vec<_> = known.collect();
        (!known.is_empty()).then(|| known.join(", "))
    }

    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap()
    }

    /// Writes a line for each claim, point and list of values, so that changes can be read.
    pub(crate) fn write(&self, path: &Path) {
        let mut text = format!(
            "{{\n\"experiment\": {},\n\"backend\": {},\n\"seed\": {},\n\"repeats\": {},\n\"digest\": {},\n",
            json(&self.experiment),
            json(&self.backend),
            self.seed,
            self.repeats,
            json(&self.digest)
        );
        for (key, value) in [("version", &self.version), ("commit", &self.commit)] {
            if let Some(value) = value {
                writeln!(text, "\"{key}\": {},", json(value)).unwrap();
            }
        }
        if let Some(seconds) = self.wall_s {
            writeln!(text, "\"wall_s\": {seconds},").unwrap();
        }
        let lines = |list: Vec<String>| list.join(",\n");
        let claims = self.claims.iter().map(json).collect();
        let points = self.points.iter().map(json).collect();
        write!(text, "\"claims\": [\n{}\n],\n", lines(claims)).unwrap();
        write!(text, "\"points\": [\n{}\n],\n", lines(points)).unwrap();
        let variants = self.values.iter().map(|(variant, metrics)| {
            let metrics = metrics
                .iter()
                .map(|(metric, at)| format!("{}: {}", json(metric), json(at)));
            format!("{}: {{\n{}\n}}", json(variant), lines(metrics.collect()))
        });
        let variants = lines(variants.collect());
        write!(text, "\"values\": {{\n{variants}\n}}").unwrap();
        if !self.gains.is_empty() {
            let gains = self.gains.iter();
            let gains = gains.map(|(pair, at)| format!("{}: {}", json(pair), json(at)));
            write!(text, ",\n\"gains\": {{\n{}\n}}", lines(gains.collect())).unwrap();
        }
        if !self.published.is_empty() {
            let published = self.published.iter();
            let published = published.map(|(what, at)| format!("{}: {}", json(what), json(at)));
            write!(
                text,
                ",\n\"published\": {{\n{}\n}}",
                lines(published.collect())
            )
            .unwrap();
        }
        let mut section = |name: &str, each: Vec<String>| {
            if !each.is_empty() {
                write!(text, ",\n\"{name}\": {{\n{}\n}}", lines(each)).unwrap();
            }
        };
        let each = self.intervals.iter();
        let each = each.map(|(what, at)| format!("{}: {}", json(what), json(at)));
        section("intervals", each.collect());
        let each = self.correlations.iter();
        let each = each.map(|(what, at)| format!("{}: {}", json(what), json(at)));
        section("correlations", each.collect());
        text += "\n}\n";
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The points whose parameters match `condition`.
    pub(crate) fn select(&self, condition: &BTreeMap<String, Value>) -> Vec<usize> {
        let is_met = |point: &BTreeMap<String, Value>| {
            let mut keys = condition.iter();
            keys.all(|(name, value)| match value {
                Value::Array(any) => point.get(name).is_some_and(|is| any.contains(is)),
                value => point.get(name) == Some(value),
            })
        };
        let all = 0..self.points.len();
        let found: Vec<_> = all.filter(|index| is_met(&self.points[*index])).collect();
        assert!(
            !found.is_empty(),
            "{}: no point {condition:?}",
            self.experiment
        );
        found
    }

    /// The improvement of `pair` at a point and the ends of its interval, in percent.
    pub(crate) fn gain(&self, pair: &Pair, point: usize) -> [f64; 3] {
        let at = self.gains.get(&pair.to_string());
        let gain = at.and_then(|at| at.get(point).copied().flatten());
        gain.unwrap_or_else(|| panic!("{} does not compare {pair}", self.experiment))
    }

    /// The paper's value at a point, if there is one.
    pub(crate) fn published(&self, measure: &Measure, point: usize) -> Option<f64> {
        self.published_as(&measure.to_string(), point)
    }

    /// The paper's improvement at a point, if there is one, in percent.
    pub(crate) fn published_gain(&self, pair: &Pair, point: usize) -> Option<f64> {
        self.published_as(&pair.to_string(), point)
    }

    fn published_as(&self, what: &str, point: usize) -> Option<f64> {
        let at = self.published.get(what);
        let at =
            at.unwrap_or_else(|| panic!("{} has nothing published of {what}", self.experiment));
        at[point]
    }

    /// A value at a point.
    pub(crate) fn value(
        &self,
        variant: &str,
        metric: &str,
        statistic: Statistic,
        point: usize,
    ) -> f64 {
        let value = self.known(variant, metric, statistic, point);
        value.unwrap_or_else(|| {
            let (id, name) = (&self.experiment, key(metric, statistic));
            panic!(
                "{id} has no {name} of {variant} at {:?}",
                self.points[point]
            )
        })
    }

    /// A value at a point, if it is kept.
    pub(crate) fn known(
        &self,
        variant: &str,
        metric: &str,
        statistic: Statistic,
        point: usize,
    ) -> Option<f64> {
        let metrics = self.values.get(variant)?;
        let at = metrics.get(&key(metric, statistic))?;
        at.get(point).copied().flatten()
    }
}

/// The 95 % interval of a statistic at `point`. Extremes have none, and few values give none to rely on; where nothing is
/// random, it is the value.
fn interval(
    results: &Results,
    runs: &StoredRuns,
    measure: &Measure,
    point: &BTreeMap<String, Value>,
) -> Option<[f64; 2]> {
    let mut cells = results.cells.iter();
    let cell = cells.find(|cell| cell.variant == measure.variant && cell.parameters == *point)?;
    let summary = cell.metrics.get(&measure.metric)?;
    let ends = match measure.statistic {
        statistic if cell.deterministic => [statistic.of(summary)?; 2],
        Statistic::Median => summary.ci95?,
        Statistic::Mean => interval_of_mean(summary.mean?, summary.std?, summary.n)?,
        statistic if summary.n < statistic.fewest_values() => return None,
        statistic => {
            let of_cell = runs.records.iter().filter(|record| {
                record.variant == measure.variant && runs.plan.points[record.point] == *point
            });
            let values: Vec<_> = of_cell
                .filter_map(|record| record.observed(&measure.metric))
                .collect();
            let seed = Seed::new(runs.plan.seed).of(&measure.to_string());
            stats::interval(&values, statistic, runs.plan.resamples, seed)?
        }
    };
    // The rounding error is below the precision of all tables.
    ends.map(|end| format!("{end:.5e}").parse().ok())
        .into_iter()
        .collect::<Option<Vec<_>>>()?
        .try_into()
        .ok()
}

/// The correlation that `name` names as `variant, metric`, and the ends of its 95 % interval (Fisher's).
fn correlation(results: &Results, name: &str, point: &BTreeMap<String, Value>) -> Option<[f64; 3]> {
    let found = results
        .correlations
        .iter()
        .find(|one| format!("{}, {}", one.variant, one.x) == name && one.parameters == *point)?;
    let r = found.r.filter(|r| r.abs() < 1.0 && found.n > 3)?;
    let half = 1.959_964 / ((found.n - 3) as f64).sqrt();
    let ends = [r.atanh() - half, r.atanh() + half].map(f64::tanh);
    let rounded = |value: f64| format!("{value:.4}").parse().ok();
    Some([rounded(r)?, rounded(ends[0])?, rounded(ends[1])?])
}

/// The 95 % interval of a mean of `n` values by Student's distribution; none for less than three.
pub(crate) fn interval_of_mean(mean: f64, std: f64, n: usize) -> Option<[f64; 2]> {
    if n < 3 {
        return None;
    }
    let half = student(n - 1) * std / (n as f64).sqrt();
    Some([mean - half, mean + half])
}

/// The 97.5th percentile of Student's distribution: Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5),
/// 3 % too small with two degrees of freedom, and less than 0.5 % from four on.
fn student(degrees: usize) -> f64 {
    let z = 1.959_964_f64;
    let n = degrees as f64;
    let terms = [
        z.powi(3) + z,
        5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z,
        3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z,
    ];
    z + terms[0] / (4.0 * n) + terms[1] / (96.0 * n * n) + terms[2] / (384.0 * n.powi(3))
}

/// The improvement of `pair` at `point` and the ends of its interval, as far as tables show them.
fn gain(results: &Results, pair: &Pair, point: &BTreeMap<String, Value>) -> Option<[f64; 3]> {
    let found = comparison(results, pair, point)?;
    let value = found.improvement_percent?;
    let exact = found.deterministic.then_some([value; 2]);
    let [low, high] = exact.or(found.ci95)?;
    let tenths = [value, low, high].map(|percent| (percent * 10.0).round());
    Some(tenths.map(|tenths| tenths / 10.0))
}

fn comparison<'a>(
    results: &'a Results,
    pair: &Pair,
    point: &BTreeMap<String, Value>,
) -> Option<&'a ComparisonResult> {
    results.comparisons.iter().find(|one| {
        (&one.a, &one.b, &one.metric) == (&pair.a, &pair.b, &pair.metric)
            && one.statistic == pair.statistic
            && one.parameters == *point
    })
}

fn published_gain(results: &Results, pair: &Pair, point: &BTreeMap<String, Value>) -> Option<f64> {
    comparison(results, pair, point)?.published_percent
}

fn published(results: &Results, measure: &Measure, point: &BTreeMap<String, Value>) -> Option<f64> {
    let found = results.published.iter().find(|one| {
        (&one.variant, &one.metric) == (&measure.variant, &measure.metric)
            && one.statistic == measure.statistic
            && one.parameters == *point
    });
    found.map(|one| one.value)
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

/// The excerpt of 40 runs whose metric is 1 to 40, through a file.
fn excerpt_of_forty(wanted: &Wanted) -> Excerpt {
    let text =
        "title = 'x'\nlink = 'lte-a'\nworkload.objects = '1MB'\nrepeats = 40\n[variant.one]\n";
    let experiment = Experiment::parse(text, "x.toml", &[]).unwrap();
    let backend = |job: &Job| {
        Ok(Outcome {
            metrics: BTreeMap::from([("completion_s".to_owned(), f64::from(job.repeat + 1))]),
            ..Outcome::default()
        })
    };
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        commit: Some("1a2b3c4"),
        out: Some(directory.path().to_owned()),
        ..Options::default()
    };
    run::run(&experiment, &backend, &options, &mut |_| {}).unwrap();
    let path = directory.path().join("x.json");
    Excerpt::take(directory.path(), wanted).write(&path);
    Excerpt::read(&path)
}

#[test]
fn an_excerpt_names_the_build_that_made_it() {
    let expected = format!("{}, 1a2b3c4", env!("CARGO_PKG_VERSION"));
    assert_eq!(excerpt_of_forty(&Wanted::default()).build(), Some(expected));
}

#[test]
fn an_excerpt_keeps_intervals_of_all_statistics_but_extremes() {
    for statistic in [
        Statistic::Median,
        Statistic::Mean,
        Statistic::P95,
        Statistic::Std,
        Statistic::Cov,
        Statistic::Min,
        Statistic::Max,
    ] {
        let measure = Measure {
            variant: "one".to_owned(),
            metric: "completion_s".to_owned(),
            statistic,
        };
        let wanted = Wanted {
            variants: BTreeSet::from([measure.variant.clone()]),
            metrics: BTreeSet::from([(measure.metric.clone(), statistic)]),
            intervals: BTreeSet::from([measure.clone()]),
            ..Wanted::default()
        };
        let excerpt = excerpt_of_forty(&wanted);
        let value = excerpt.value(&measure.variant, &measure.metric, statistic, 0);
        let interval = excerpt.intervals[&measure.to_string()][0];
        if matches!(statistic, Statistic::Min | Statistic::Max) {
            assert_eq!(interval, None, "{statistic}");
        } else {
            let [low, high] = interval.unwrap();
            assert!(
                low < value && value < high,
                "{statistic}: {low} {value} {high}"
            );
        }
    }
}
