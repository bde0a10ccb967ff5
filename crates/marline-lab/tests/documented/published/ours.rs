//! Our counterparts of published numbers, from the committed results.

use std::collections::BTreeMap;

use marline_lab::scenario::Value;
use marline_lab::stats::Statistic;

use super::super::excerpt::{Excerpt, Measure, interval_of_mean};
use super::super::root;
use super::flows::share_between;
use super::index::Entry;

/// Ours at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) value: f64,
    /// Its 95 % confidence interval, if the results have what it takes.
    pub(crate) interval: Option<[f64; 2]>,
}

impl Measured {
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let interval = self.interval.map(|ends| {
            let [one, other] = ends.map(&f);
            [one.min(other), one.max(other)]
        });
        Self {
            value: f(self.value),
            interval,
        }
    }

    /// The difference to `other`, with an interval as if both were independent.
    fn minus(self, other: Self) -> Self {
        let value = self.value - other.value;
        let intervals = self.interval.zip(other.interval);
        let interval = intervals.map(|([low, high], [least, most])| {
            let below = (self.value - low).hypot(most - other.value);
            let above = (high - self.value).hypot(other.value - least);
            [value - below, value + above]
        });
        Self { value, interval }
    }

    /// The ratio to `other`, with the ends that both intervals allow.
    fn over(self, other: Self) -> Self {
        let interval = self.interval.zip(other.interval);
        let interval = interval.filter(|(_, [least, _])| *least > 0.0);
        Self {
            value: self.value / other.value,
            interval: interval.map(|([low, high], [least, most])| [low / most, high / least]),
        }
    }
}

/// Our results for a number.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) measured: Vec<Measured>,
    /// The statistic in whose place the median stands, because the results do not have it.
    pub(crate) instead_of: Option<Statistic>,
}

/// Ours of `entry`; `None` if the results do not have it.
pub(crate) fn ours(entry: &Entry, excerpt: Option<&Excerpt>) -> Option<Ours> {
    if let Some(file) = &entry.file {
        return of_file(entry, file);
    }
    if !entry.less_where.is_empty() || entry.less_variant.is_some() || entry.less_metric.is_some() {
        return difference(entry, excerpt);
    }
    if entry.mean_of_each {
        let each = Entry {
            mean_of_each: false,
            ..entry.clone()
        };
        let mut found = ours(&each, excerpt)?;
        found.measured = vec![mean(&found.measured)];
        return Some(found);
    }
    let excerpt = excerpt?;
    if let Some(correlation) = entry.correlation() {
        let at = excerpt.correlations.get(&correlation)?;
        let each = points(excerpt, &entry.place).into_iter().map(|point| {
            let [value, low, high] = (*at.get(point)?)?;
            Some(Measured {
                value,
                interval: Some([low, high]),
            })
        });
        return Some(Ours {
            measured: each.collect::<Option<_>>()?,
            instead_of: None,
        });
    }
    let points = points(excerpt, &entry.place);
    assert!(
        !points.is_empty(),
        "{} has no point {:?}",
        excerpt.experiment,
        entry.place
    );
    let statistic = entry.statistic();
    let instead = (statistic != Statistic::Median).then_some(Statistic::Median);
    let wanted = of_points(entry, excerpt, &points, statistic).map(|found| (found, None));
    // Gains of other statistics are other quantities.
    let instead = instead.filter(|_| statistic == Statistic::Mean);
    let found = wanted.or_else(|| {
        let found = of_points(entry, excerpt, &points, instead?)?;
        Some((found, Some(statistic)))
    });
    let (measured, instead_of) = found?;
    let scale = entry.scale.unwrap_or(1.0);
    let measured = measured.into_iter().map(|mut one| {
        if entry.exact {
            one.interval = Some([one.value; 2]);
        }
        one.map(|value| value * scale)
    });
    Some(Ours {
        measured: measured.collect(),
        instead_of,
    })
}

/// The value of `entry`, less its value at the points of `less_where`, with `less_variant` or of `less_metric`.
fn difference(entry: &Entry, excerpt: Option<&Excerpt>) -> Option<Ours> {
    let mut mine = entry.clone();
    let place = std::mem::take(&mut mine.less_where);
    let variant = mine.less_variant.take();
    let metric = mine.less_metric.take();
    let mut other = mine.clone();
    if !place.is_empty() {
        other.place = place;
    }
    other.variant = variant.or(other.variant);
    other.metric = metric.or(other.metric);
    let mut found = ours(&mine, excerpt)?;
    let others = ours(&other, excerpt)?.measured;
    assert_eq!(found.measured.len(), others.len(), "{:?}", entry.less_where);
    for (one, other) in found.measured.iter_mut().zip(others) {
        *one = one.minus(other);
    }
    Some(found)
}

/// The points whose parameters are as in `place`; texts may have no quotes.
fn points(excerpt: &Excerpt, place: &BTreeMap<String, Value>) -> Vec<usize> {
    let text = |value: &Value| value.to_string().trim_matches('"').to_owned();
    let all = 0..excerpt.points.len();
    let is_met = |point: &usize| {
        place.iter().all(|(name, wanted)| {
            let is = excerpt.points[*point].get(name).map(text);
            match wanted {
                Value::Array(any) => is.is_some_and(|is| any.iter().any(|one| text(one) == is)),
                one => is.is_some_and(|is| text(one) == is),
            }
        })
    };
    all.filter(is_met).collect()
}

fn of_points(
    entry: &Entry,
    excerpt: &Excerpt,
    points: &[usize],
    statistic: Statistic,
) -> Option<Vec<Measured>> {
    let value_at = |points: &[usize], variant: &str, metric: &str, statistic| {
        let at = points.iter();
        let each = at.map(|&point| measured(excerpt, variant, metric, statistic, point));
        let each: Option<Vec<_>> = each.collect();
        each.map(|each| match entry.averaged {
            true => vec![mean(&each)],
            false => each,
        })
    };
    let value =
        |variant: &str, metric: &str, statistic| value_at(points, variant, metric, statistic);
    let variant = entry.variant.as_deref()?;
    let metric = entry.metric.as_deref()?;
    let compared = entry
        .pair()
        .filter(|_| !entry.averaged && statistic == entry.statistic());
    if let Some(pair) = compared {
        let at = excerpt.gains.get(&pair.to_string());
        let gains = at.and_then(|at| {
            let each = points.iter().map(|&point| *at.get(point)?);
            each.collect::<Option<Vec<_>>>()
        });
        if let Some(gains) = gains {
            let each = gains.into_iter().map(|[value, low, high]| Measured {
                value,
                interval: Some([low, high]),
            });
            return Some(each.collect());
        }
    }
    let mine = value(variant, metric, statistic)?;
    let by = |others: Vec<Measured>| {
        let both = mine.iter().zip(others);
        both.map(|(&one, other)| one.over(other))
            .collect::<Vec<_>>()
    };
    let percent = |ratios: Vec<Measured>, f: &dyn Fn(f64) -> f64| {
        ratios.into_iter().map(|one| one.map(f)).collect::<Vec<_>>()
    };
    if let Some(other) = &entry.share_ahead_of {
        let others = value(other, metric, statistic)?;
        let times = value(
            entry.slowest_of.as_deref().unwrap_or(variant),
            metric,
            statistic,
        )?;
        let mut order: Vec<_> = (0..times.len()).collect();
        order.sort_by(|a, b| times[*b].value.total_cmp(&times[*a].value));
        let counted = match entry.slowest_of {
            Some(_) => &order[..order.len().div_ceil(4)],
            None => &order,
        };
        let is_ahead = |point: &&usize| mine[**point].value < others[**point].value;
        let ahead = counted.iter().filter(is_ahead).count();
        return Some(vec![share(ahead, counted.len())]);
    }
    if let Some(other) = &entry.gain_over {
        let ratios = by(value(other, metric, statistic)?);
        return Some(percent(ratios, &|ratio| 100.0 * (1.0 - ratio)));
    }
    if let Some(other) = &entry.increase_over {
        let ratios = by(value(other, metric, statistic)?);
        return Some(percent(ratios, &|ratio| 100.0 * (ratio - 1.0)));
    }
    if !entry.increase_from.is_empty() {
        let from = self::points(excerpt, &entry.increase_from);
        let ratios = by(value_at(&from, variant, metric, statistic)?);
        if let Some(other) = &entry.divided_by {
            let before = value_at(&from, other, metric, statistic)?;
            let after = value(other, metric, statistic)?.into_iter();
            let others = after.zip(before).map(|(after, before)| after.over(before));
            let both = ratios.into_iter().zip(others);
            return Some(both.map(|(mine, other)| mine.over(other)).collect());
        }
        return Some(percent(ratios, &|ratio| 100.0 * (ratio - 1.0)));
    }
    if let Some(other) = &entry.divided_by {
        return Some(by(value(other, metric, statistic)?));
    }
    if let Some(other) = &entry.divided_by_metric {
        return Some(by(value(variant, other, statistic)?));
    }
    if let Some(other) = entry.divided_by_statistic {
        return Some(by(value(variant, metric, other)?));
    }
    Some(mine)
}

/// The values at `pointer`, whose parts `*` stand for all members.
fn each<'a>(json: &'a serde_json::Value, pointer: &str) -> Vec<&'a serde_json::Value> {
    let mut found = vec![json];
    for part in pointer.split('/').skip(1) {
        let members = found.into_iter().flat_map(|value| match (part, value) {
            ("*", serde_json::Value::Array(all)) => all.iter().collect::<Vec<_>>(),
            ("*", serde_json::Value::Object(all)) => all.values().collect(),
            (part, value) => value.pointer(&format!("/{part}")).into_iter().collect(),
        });
        found = members.collect::<Vec<_>>();
    }
    found
}

/// The sum of a table of confusion without its diagonal.
fn errors(confusion: &serde_json::Value) -> usize {
    let rows = confusion.as_object().into_iter().flatten();
    let cells = rows.flat_map(|(row, cells)| {
        let cells = cells.as_object().into_iter().flatten();
        cells.filter_map(move |(column, count)| count.as_u64().filter(|_| column != row))
    });
    cells.sum::<u64>() as usize
}

/// The share of `values` that are as `entry` asks for.
fn counted(entry: &Entry, values: &[&serde_json::Value]) -> Measured {
    let is_counted = |value: &&&serde_json::Value| match (&entry.is, entry.above) {
        (Some(text), _) => value.as_str() == Some(text),
        (None, Some(bound)) => value.as_f64().is_some_and(|value| value > bound),
        (None, None) => panic!("{:?} has neither a text nor a bound", entry.pointer),
    };
    assert!(!values.is_empty(), "no values at {:?}", entry.pointer);
    share(values.iter().filter(is_counted).count(), values.len())
}

/// The 95 % interval of a correlation of `n` pairs, by Fisher's transformation.
fn of_correlation(value: f64, n: f64) -> [f64; 2] {
    let half = 1.959_964 / (n - 3.0).sqrt();
    [-half, half].map(|half| (value.atanh() + half).tanh())
}

/// A share in percent, with Wilson's 95 % interval.
pub(crate) fn share(count: usize, of: usize) -> Measured {
    let (count, n) = (count as f64, of as f64);
    let (share, z2) = (count / n, 1.959_964_f64.powi(2));
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let variance = share * (1.0 - share) / n + z2 / (4.0 * n * n);
    let half = (z2 * variance).sqrt() / (1.0 + z2 / n);
    let percent = |share: f64| 100.0 * share;
    Measured {
        value: percent(share),
        interval: Some([percent(middle - half), percent(middle + half)]),
    }
}

/// The mean over points; its interval supposes that they are independent.
fn mean(points: &[Measured]) -> Measured {
    let n = points.len() as f64;
    let half = |one: &Measured| one.interval.map(|[low, high]| (high - low) / 2.0);
    let halves: Option<Vec<_>> = points.iter().map(half).collect();
    let value = points.iter().map(|one| one.value).sum::<f64>() / n;
    let width = halves.map(|all| all.iter().map(|half| half * half).sum::<f64>().sqrt() / n);
    Measured {
        value,
        interval: width.map(|width| [value - width, value + width]),
    }
}

fn measured(
    excerpt: &Excerpt,
    variant: &str,
    metric: &str,
    statistic: Statistic,
    point: usize,
) -> Option<Measured> {
    let value = excerpt.known(variant, metric, statistic, point)?;
    let measure = Measure {
        variant: variant.to_owned(),
        metric: metric.to_owned(),
        statistic,
    };
    let kept = excerpt.intervals.get(&measure.to_string());
    let kept = kept.and_then(|at| at.get(point).copied().flatten());
    let interval = kept.or_else(|| {
        let std = excerpt.known(variant, metric, Statistic::Std, point)?;
        let is_mean = statistic == Statistic::Mean;
        is_mean.then(|| interval_of_mean(value, std, excerpt.repeats as usize))?
    });
    Some(Measured { value, interval })
}

fn of_file(entry: &Entry, file: &str) -> Option<Ours> {
    let path = root().join(file);
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |pointer: &str| {
        let value = json.pointer(pointer).and_then(serde_json::Value::as_f64);
        value.unwrap_or_else(|| panic!("{file} has no number {pointer}"))
    };
    let at = |value: &str, interval: Option<&str>| Measured {
        value: number(value),
        interval: interval.map(|pointer| [0, 1].map(|end| number(&format!("{pointer}/{end}")))),
    };
    let pointer = entry.pointer.as_deref()?;
    let found = |pointer: &str| {
        let value = json.pointer(pointer);
        value.unwrap_or_else(|| panic!("{file} has nothing at {pointer}"))
    };
    if let (Some(bounds), Some(of)) = (entry.between, &entry.share_of) {
        let ends = share_between(found(pointer), number(of), bounds);
        return Some(Ours {
            measured: vec![Measured {
                value: f64::midpoint(ends[0], ends[1]),
                interval: Some(ends),
            }],
            instead_of: None,
        });
    }
    let mut one = match pointer.contains('*') {
        true => counted(entry, &each(&json, pointer)),
        false => at(pointer, entry.interval.as_deref()),
    };
    if let Some(pointer) = &entry.less {
        one = one.minus(at(pointer, entry.less_interval.as_deref()));
    }
    if let Some(pointer) = &entry.correlation_of {
        one.interval = Some(of_correlation(one.value, number(pointer)));
    }
    if let (Some(statistic), Some(confusion)) = (entry.of_confusion, &entry.confusion) {
        let kept = one.value;
        one = statistic.measured(found(confusion));
        assert!(
            (one.value - kept).abs() < 1e-6,
            "{confusion} is not of {pointer}"
        );
    }
    if let Some(pointer) = &entry.among_errors_of {
        let of = errors(json.pointer(pointer).unwrap());
        one = share(one.value as usize, of);
    }
    if let Some(pointer) = &entry.share_of {
        let of = number(pointer);
        one = share((one.value / 100.0 * of).round() as usize, of as usize);
    }
    if let Some(other) = &entry.against {
        let other = number(other);
        one = one.map(|value| 100.0 * (value / other - 1.0));
    }
    let scale = entry.scale.unwrap_or(1.0);
    Some(Ours {
        measured: vec![one.map(|value| value * scale)],
        instead_of: None,
    })
}

#[test]
fn values_of_a_file_are_counted() {
    let json = serde_json::json!({ "a": { "root": "x", "n": [95, 80] }, "b": { "root": "y", "n": [91, 90] } });
    let entry = Entry {
        is: Some("x".to_owned()),
        ..Entry::default()
    };
    let half = counted(&entry, &each(&json, "/*/root"));
    assert!((half.value - 50.0).abs() < 1e-9);
    let entry = Entry {
        above: Some(90.0),
        ..Entry::default()
    };
    let half = counted(&entry, &each(&json, "/*/n/*"));
    assert!((half.value - 50.0).abs() < 1e-9);
}

#[test]
fn errors_are_beside_the_diagonal() {
    let json = serde_json::json!({ "x": { "x": 90, "y": 3 }, "y": { "x": 4, "y": 80 } });
    assert_eq!(errors(&json), 7);
}

#[test]
fn a_difference_is_as_uncertain_as_both_values() {
    let one = |value, half| Measured {
        value,
        interval: Some([value - half, value + half]),
    };
    let [low, high] = one(10.0, 3.0).minus(one(4.0, 4.0)).interval.unwrap();
    assert!((low - 1.0).abs() < 1e-9 && (high - 11.0).abs() < 1e-9);
    let [low, high] = of_correlation(-0.5459, 84.0);
    assert!((low + 0.68).abs() < 0.01 && (high + 0.37).abs() < 0.01);
}
