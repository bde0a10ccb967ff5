//! Shares from kept quantiles of the flow analysis, and intervals from its tables of confusion.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::ours::{Measured, share};

/// A statistic of a table of confusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OfConfusion {
    /// The mean of the classes' F-measures.
    FMeasure,
    /// Cohen's kappa.
    Kappa,
}

type Confusion = BTreeMap<String, BTreeMap<String, f64>>;

impl OfConfusion {
    /// The statistic in percent with its 95 % interval, by the jackknife over observations.
    pub(crate) fn measured(self, confusion: &Value) -> Measured {
        let mut cells: Confusion = serde_json::from_value(confusion.clone()).unwrap();
        let value = self.of(&cells);
        let places = cells.iter().flat_map(|(is, row)| {
            row.iter()
                .map(move |(taken_for, &count)| (is.clone(), taken_for.clone(), count))
        });
        let places: Vec<_> = places.collect();
        let n: f64 = places.iter().map(|(_, _, count)| count).sum();
        let mut without = Vec::new();
        for (is, taken_for, count) in places.into_iter().filter(|(_, _, count)| *count > 0.0) {
            let mut change = |by| *cells.get_mut(&is).unwrap().get_mut(&taken_for).unwrap() += by;
            change(-1.0);
            let left = self.of(&cells);
            let mut change = |by| *cells.get_mut(&is).unwrap().get_mut(&taken_for).unwrap() += by;
            change(1.0);
            without.push((left, count));
        }
        let mean = without
            .iter()
            .map(|(left, count)| left * count)
            .sum::<f64>()
            / n;
        let squares = without
            .iter()
            .map(|(left, count)| count * (left - mean).powi(2));
        let half = 1.959_964 * (squares.sum::<f64>() * (n - 1.0) / n).sqrt();
        Measured {
            value,
            interval: Some([value - half, value + half]),
        }
    }

    fn of(self, cells: &Confusion) -> f64 {
        let of_class = |class: &String| -> [f64; 3] {
            let taken_for = cells.values().map(|row| row[class]);
            [
                cells[class][class],
                cells[class].values().sum(),
                taken_for.sum(),
            ]
        };
        let classes: Vec<_> = cells.keys().map(of_class).collect();
        100.0
            * match self {
                Self::FMeasure => {
                    let each = classes
                        .iter()
                        .map(|[right, are, taken]| 2.0 * right / (are + taken));
                    each.sum::<f64>() / classes.len() as f64
                }
                Self::Kappa => {
                    let n: f64 = classes.iter().map(|[_, are, _]| are).sum();
                    let observed = classes.iter().map(|[right, ..]| right / n).sum::<f64>();
                    let expected = classes.iter().map(|[_, are, taken]| are / n * taken / n);
                    let expected = expected.sum::<f64>();
                    (observed - expected) / (1.0 - expected)
                }
            }
    }
}

/// The share in percent of `n` observations that are at least `low` and below `high`: what their kept quantiles (`p25`)
/// allow, with 95 % confidence.
pub(crate) fn share_between(quantiles: &Value, n: f64, [low, high]: [f64; 2]) -> [f64; 2] {
    let quantiles = quantiles.as_object().unwrap();
    let percent = |name: &str| match name {
        "median" => Some(50.0),
        name => name.strip_prefix('p')?.parse::<f64>().ok(),
    };
    let known = quantiles
        .iter()
        .filter_map(|(name, value)| Some((percent(name)?, value.as_f64()?)));
    let known: Vec<_> = known.collect();
    assert!(!known.is_empty(), "no quantiles in {quantiles:?}");
    let below = |bound: f64| -> [f64; 2] {
        if bound <= 0.0 {
            return [0.0; 2];
        }
        if bound.is_infinite() {
            return [100.0; 2];
        }
        let least = known.iter().filter(|(_, value)| *value < bound);
        let most = known.iter().filter(|(_, value)| *value >= bound);
        [
            least.map(|(percent, _)| *percent).fold(0.0, f64::max),
            most.map(|(percent, _)| *percent).fold(100.0, f64::min),
        ]
    };
    let [[least, most], [before, before_most]] = [below(high), below(low)];
    let least = (least - before_most).max(0.0);
    let most = most - before;
    let end = |percent: f64, end: usize| {
        let count = (percent / 100.0 * n).round() as usize;
        share(count, n as usize).interval.unwrap()[end]
    };
    [end(least, 0), end(most, 1)]
}

#[test]
fn quantiles_bound_the_share_between_them() {
    let quantiles = serde_json::json!({ "mean": 3.0, "p25": 0.9, "median": 2.0, "p95": 9.0 });
    let share = |between| share_between(&quantiles, 1e6, between).map(|end| (end * 10.0).round());
    assert_eq!(share([0.0, 1.0]), [249.0, 501.0]);
    assert_eq!(share([1.0, 10.0]), [449.0, 751.0]);
    assert_eq!(share([10.0, f64::INFINITY]), [0.0, 50.0]);
}

#[test]
fn kappa_of_two_classes_has_the_known_interval() {
    let cells = serde_json::json!({ "x": { "x": 450, "y": 50 }, "y": { "x": 50, "y": 450 } });
    let kappa = OfConfusion::Kappa.measured(&cells);
    assert!((kappa.value - 80.0).abs() < 1e-9);
    let [low, high] = kappa.interval.unwrap();
    // 1.96 times the root of 0.9 * 0.1 / (1000 * 0.5^2).
    assert!((high - low - 2.0 * 3.72).abs() < 0.05, "{low} {high}");
    let f = OfConfusion::FMeasure.measured(&cells);
    assert!((f.value - 90.0).abs() < 1e-9);
}
