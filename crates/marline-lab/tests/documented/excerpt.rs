//! The excerpt of an experiment's results that pages show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::path::Path;

use marline_lab::run::{ComparisonResult, Results};
use marline_lab::scenario::Value;
use marline_lab::stats::Statistic;
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
}

/// The verdict on a claim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) text: String,
    pub(crate) holds: Option<bool>,
    /// Comparisons that meet it.
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
    /// The part of `results` that is `wanted`.
    pub(crate) fn of(results: &Results, wanted: &Wanted) -> Self {
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
        let claims = results.must.iter().map(|must| Verdict {
            text: must.text.clone(),
            holds: must.holds,
            met: must.met,
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
            claims,
            points: points.collect(),
            values,
            gains,
            published,
        }
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
        let name = key(metric, statistic);
        let of_variant = self.values.get(variant);
        let at = of_variant.and_then(|metrics| metrics.get(&name));
        let value = at.and_then(|at| at.get(point).copied().flatten());
        value.unwrap_or_else(|| {
            let id = &self.experiment;
            panic!(
                "{id} has no {name} of {variant} at {:?}",
                self.points[point]
            )
        })
    }
}

/// The improvement of `pair` at `point` and the ends of its interval, as far as tables show them.
fn gain(results: &Results, pair: &Pair, point: &BTreeMap<String, Value>) -> Option<[f64; 3]> {
    let found = comparison(results, pair, point)?;
    let [low, high] = found.ci95?;
    let tenths = [found.improvement_percent?, low, high].map(|percent| (percent * 10.0).round());
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
