//! Summarizes runs as results.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use marline_link::Seed;

use super::digest::Digest;
use super::must::Covered;
use super::plan::json_text;
use super::{
    CellResult, ComparisonResult, CorrelationResult, MustResult, Plan, PublishedResult, Record,
    Results,
};
use crate::scenario::{Alone, Claim, Comparison, Correlation, Must};
use crate::stats::{
    Interval, Statistic, Summary, interval, is_better_larger, pearson, quantile, ratio_interval,
    sorted,
};

/// The metric of the ideal completion time that the links allow.
const IDEAL: &str = "ideal_s";

/// The results of `records`, which are in the order of their numbers. [`Results::wall_s`] and
/// [`Results::resumed`] are left at 0.
pub fn summarize(plan: &Plan, records: &[Record]) -> Results {
    let variants = plan.variants.len();
    // By cell, then by repeat.
    let mut cells: Vec<Vec<&Record>> = vec![Vec::new(); plan.points.len() * variants];
    for record in records {
        let position = plan.position(record.run);
        if let Some(cell) = cells.get_mut(position.point * variants + position.variant) {
            cell.push(record);
        }
    }
    let seed = Seed::new(plan.seed).of("statistics");
    let cell = |index: usize| {
        let (point, variant) = (index / variants, index % variants);
        let seed = seed.nth(index as u64);
        summarize_cell(plan, point, variant, &cells[index], seed)
    };
    let find = |name: &str| plan.variants.iter().position(|variant| variant == name);
    let mut pairs = Vec::new();
    for (number, comparison) in plan.comparisons.iter().enumerate() {
        let seed = seed.of("comparison").nth(number as u64);
        if let (Some(a), Some(b)) = (find(&comparison.a), find(&comparison.b)) {
            let known = |point: &&usize| **point < plan.points.len();
            let points = comparison.points.iter().filter(known);
            pairs.extend(points.map(|&point| Pair {
                comparison: number,
                a,
                b,
                point,
                seed,
            }));
        }
    }
    let pair = |index: usize| {
        let Pair {
            comparison,
            a,
            b,
            point,
            seed,
        } = pairs[index];
        let comparison = &plan.comparisons[comparison];
        let (a, b) = (&cells[point * variants + a], &cells[point * variants + b]);
        let seed = seed.nth(point as u64);
        let mut result = compare_seeded(comparison, a, b, plan.resamples, seed);
        result.parameters.clone_from(&plan.points[point]);
        result.published_percent = comparison.published.get(point).copied().flatten();
        result
    };
    let published = plan.published.iter().map(|value| PublishedResult {
        variant: value.variant.clone(),
        parameters: plan.points.get(value.point).cloned().unwrap_or_default(),
        metric: value.metric.clone(),
        statistic: value.statistic,
        value: value.value,
        source: value.source.clone(),
    });
    let correlations = plan.correlations.iter().map(|correlation| {
        let variant = plan
            .variants
            .iter()
            .position(|name| *name == correlation.variant);
        let cell = variant.and_then(|variant| cells.get(correlation.point * variants + variant));
        correlate(plan, correlation, cell.map_or(&[], Vec::as_slice))
    });
    let comparisons = parallel_map(pairs.len(), &pair);
    let summaries = parallel_map(cells.len(), &cell);
    let compared = |must: &Must| {
        let at = |comparison: usize, point: usize| {
            let is_it = |pair: &Pair| pair.comparison == comparison && pair.point == point;
            comparisons.get(pairs.iter().position(is_it)?)
        };
        let covered = must.checks.iter().filter_map(|check| {
            Some(Covered {
                result: at(check.comparison, check.point)?,
                gain: check.gain.and_then(|gain| at(gain, check.point)),
            })
        });
        let of_cells: Vec<_> = must
            .alone
            .iter()
            .filter_map(|one| {
                let variant = find(&one.variant)?;
                let index = one.point * variants + variant;
                let cell = summaries.get(index)?;
                Some(match must.claim {
                    Claim::ReachesValue(value) => {
                        let interval = interval_of(plan, one, cell, &cells[index], seed);
                        beside_value(cell, one, value, interval)
                    }
                    _ => beside_ideal(cell, one),
                })
            })
            .collect();
        let alone = of_cells.iter().map(|result| Covered { result, gain: None });
        let covered: Vec<_> = covered.chain(alone).collect();
        MustResult::judge(must, &covered, plan.repeats)
    };
    let must = plan.musts.iter().map(compared).collect();
    Results {
        experiment: plan.experiment.clone(),
        title: plan.title.clone(),
        paper: plan.paper.clone(),
        section: plan.section.clone(),
        shows: plan.shows.clone(),
        backend: plan.backend.clone(),
        seed: plan.seed,
        repeats: plan.repeats,
        wall_s: 0.0,
        resumed: 0,
        virtual_s: records.iter().map(|record| record.virtual_s).sum(),
        packets: records.iter().map(|record| record.packets).sum(),
        metrics: plan.metrics.clone(),
        settings: plan.settings.clone(),
        cells: summaries,
        comparisons,
        published: published.collect(),
        correlations: correlations.collect(),
        must,
        digest: digest(plan, records),
        version: plan.version.clone(),
        commit: plan.commit.clone(),
        machine: plan.machine.clone(),
        inputs: plan.inputs.clone(),
    }
}

/// Two variants compared at a point, as indices into the plan.
#[derive(Clone, Copy)]
struct Pair {
    comparison: usize,
    a: usize,
    b: usize,
    point: usize,
    seed: Seed,
}

/// The results of `work` for each number below `count`, in order, computed on all cores: intervals take
/// milliseconds each, and there are thousands.
fn parallel_map<T: Send>(count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = count.div_ceil(threads).max(1);
    thread::scope(|scope| {
        let starts = (0..count).step_by(share);
        let parts: Vec<_> = starts
            .map(|start| {
                let numbers = start..(start + share).min(count);
                scope.spawn(move || numbers.map(work).collect::<Vec<_>>())
            })
            .collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .flat_map(|part| part.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

fn summarize_cell(
    plan: &Plan,
    point: usize,
    variant: usize,
    records: &[&Record],
    seed: Seed,
) -> CellResult {
    let counting = || records.iter().filter(|record| record.counts());
    let measured = counting().flat_map(|record| record.metrics.keys());
    let names: BTreeSet<&str> = measured.map(String::as_str).collect();
    let values = names.into_iter().map(|name| {
        let observed = records.iter().filter_map(|record| record.observed(name));
        (name, observed.collect::<Vec<_>>())
    });
    // Nothing bounds the ratio of a run that exceeded its time limit, but that it is larger.
    let timed_out = records.iter().filter(|record| record.timed_out).count();
    let mut ratios = vec![f64::INFINITY; timed_out];
    for record in counting() {
        // Only times have an ideal.
        let first = plan.metrics.first().filter(|name| name.ends_with("_s"));
        let first = first.and_then(|name| record.metrics.get(name));
        if let (Some(value), Some(ideal)) = (first, record.metrics.get(IDEAL))
            && *ideal > 0.0
        {
            ratios.push(value / ideal);
        }
    }
    let deterministic = is_deterministic(records);
    let summaries = values.filter_map(|(name, values)| {
        let mut summary = Summary::of(&values, plan.resamples, seed.of(name))?;
        summary.ci95 = summary.ci95.filter(|_| !deterministic);
        Some((name.to_owned(), summary))
    });
    CellResult {
        variant: plan.variants[variant].clone(),
        parameters: plan.points[point].clone(),
        runs: records.len(),
        timed_out,
        failed: count(records.iter().filter_map(|record| record.failed.as_ref())),
        invalid: count(records.iter().filter_map(|record| record.invalid.as_ref())),
        metrics: summaries.collect(),
        ideal_ratio: Some(quantile(&sorted(&ratios), 0.5)).filter(|ratio| ratio.is_finite()),
        ideal_ratio_ci95: interval(
            &ratios,
            Statistic::Median,
            plan.resamples,
            seed.of("ideal_ratio"),
        )
        .filter(|_| !deterministic),
        deterministic,
    }
}

/// Whether all of at least two runs have the same metrics, to the last bit: what is drawn at random shows in some metric.
fn is_deterministic(records: &[&Record]) -> bool {
    let is_same = |pair: &[&Record]| pair[0].metrics == pair[1].metrics;
    records.len() > 1
        && records.iter().all(|record| record.counts())
        && records.windows(2).all(is_same)
}

/// The interval of the statistic of `alone` in its cell.
fn interval_of(
    plan: &Plan,
    alone: &Alone,
    cell: &CellResult,
    records: &[&Record],
    seed: Seed,
) -> Option<Interval> {
    if cell.deterministic {
        return None;
    }
    if alone.statistic == Statistic::Median {
        return cell.metrics.get(&alone.metric)?.ci95;
    }
    let observed = records
        .iter()
        .filter_map(|record| record.observed(&alone.metric));
    let values: Vec<_> = observed.collect();
    let seed = seed.of("claim").of(&alone.metric).nth(alone.point as u64);
    interval(&values, alone.statistic, plan.resamples, seed)
}

/// A cell compared with the ideal: the reduction of `metric`'s median below it.
fn beside_ideal(cell: &CellResult, alone: &Alone) -> ComparisonResult {
    let percent = |ratio: f64| 100.0 * (1.0 - ratio);
    ComparisonResult {
        b: "the ideal".to_owned(),
        improvement_percent: cell.ideal_ratio.map(percent),
        ci95: cell
            .ideal_ratio_ci95
            .map(|[low, high]| [percent(high), percent(low)]),
        ..beside(cell, alone)
    }
}

/// A cell compared with a value: the improvement of the statistic, which has this interval, in percent of it.
fn beside_value(
    cell: &CellResult,
    alone: &Alone,
    value: f64,
    interval: Option<Interval>,
) -> ComparisonResult {
    let summary = cell.metrics.get(&alone.metric);
    let percent = |measured: f64| improvement_percent(&alone.metric, measured / value);
    ComparisonResult {
        b: format!("the claimed {value}"),
        improvement_percent: summary
            .and_then(|summary| alone.statistic.of(summary))
            .map(percent),
        ci95: interval.map(|bounds| {
            let [a, b] = bounds.map(percent);
            [a.min(b), a.max(b)]
        }),
        ..beside(cell, alone)
    }
}

/// A comparison without its other side.
fn beside(cell: &CellResult, alone: &Alone) -> ComparisonResult {
    ComparisonResult {
        parameters: cell.parameters.clone(),
        metric: alone.metric.clone(),
        a: cell.variant.clone(),
        b: String::new(),
        statistic: alone.statistic,
        pairs: cell
            .metrics
            .get(&alone.metric)
            .map_or(0, |summary| summary.n),
        improvement_percent: None,
        ci95: None,
        deterministic: cell.deterministic,
        published_percent: None,
        source: None,
    }
}

/// The improvement for this ratio of a metric to the value it is compared with: positive for better values, be they larger
/// or smaller.
fn improvement_percent(metric: &str, ratio: f64) -> f64 {
    let sign = if is_better_larger(metric) { -1.0 } else { 1.0 };
    sign * 100.0 * (1.0 - ratio)
}

fn count<'a>(reasons: impl Iterator<Item = &'a String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason.clone()).or_default() += 1;
    }
    counts
}

/// Compares `a` with `b`, runs of `plan`, in the repeats in which both count. Parameters and published values are left out.
pub(crate) fn compare_cells(
    comparison: &Comparison,
    a: &[&Record],
    b: &[&Record],
    plan: &Plan,
) -> ComparisonResult {
    let names = format!("{} {}", comparison.a, comparison.b);
    let seed = Seed::new(plan.seed).of(&names);
    compare_seeded(comparison, a, b, plan.resamples, seed)
}

fn compare_seeded(
    comparison: &Comparison,
    a: &[&Record],
    b: &[&Record],
    resamples: usize,
    seed: Seed,
) -> ComparisonResult {
    let value = |record: &Record| record.observed(&comparison.metric);
    let others: BTreeMap<u32, f64> = b
        .iter()
        .filter_map(|record| Some((record.repeat, value(record)?)))
        .collect();
    let pairs = a.iter().filter_map(|record| {
        let other = others.get(&record.repeat)?;
        Some((value(record)?, *other))
    });
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let statistic = comparison.statistic;
    let percent = |ratio: f64| improvement_percent(&comparison.metric, ratio);
    let of = |values: &[f64]| statistic.of(&Summary::of(values, 0, seed)?);
    let improvement = of(&ours)
        .zip(of(&theirs))
        .map(|(ours, theirs)| percent(ours / theirs))
        .filter(|improvement| improvement.is_finite());
    let deterministic = is_deterministic(a) && is_deterministic(b);
    // Without the statistics themselves, resamples would consist of the few that have them.
    let interval = improvement
        .filter(|_| !deterministic)
        .and_then(|_| ratio_interval(&ours, &theirs, statistic, resamples, seed));
    ComparisonResult {
        parameters: BTreeMap::new(),
        metric: comparison.metric.clone(),
        a: comparison.a.clone(),
        b: comparison.b.clone(),
        statistic,
        pairs: ours.len(),
        improvement_percent: improvement,
        ci95: interval.map(|bounds| {
            let [a, b] = bounds.map(percent);
            [a.min(b), a.max(b)]
        }),
        deterministic,
        published_percent: None,
        source: comparison.source.clone(),
    }
}

/// The correlation of two metrics over the runs that count.
fn correlate(plan: &Plan, correlation: &Correlation, records: &[&Record]) -> CorrelationResult {
    let pairs = records.iter().filter(|record| record.counts());
    let pairs = pairs.filter_map(|record| {
        let (x, y) = (
            record.metrics.get(&correlation.x)?,
            record.metrics.get(&correlation.y)?,
        );
        Some((*x, *y))
    });
    let (x, y): (Vec<f64>, Vec<f64>) = pairs.unzip();
    CorrelationResult {
        variant: correlation.variant.clone(),
        parameters: plan
            .points
            .get(correlation.point)
            .cloned()
            .unwrap_or_default(),
        x: correlation.x.clone(),
        y: correlation.y.clone(),
        n: x.len(),
        r: pearson(&x, &y),
        published: correlation.published,
        source: correlation.source.clone(),
    }
}

/// A hash over the exact metrics of all runs.
fn digest(plan: &Plan, records: &[Record]) -> String {
    let mut digest = Digest::default();
    for record in records {
        digest.text(&record.variant);
        digest.text(
            &plan
                .points
                .get(record.point)
                .map(json_text)
                .unwrap_or_default(),
        );
        digest.number(record.repeat.into());
        digest.text(record.failed.as_deref().unwrap_or_default());
        digest.number(record.metrics.len() as u64);
        for (name, value) in &record.metrics {
            digest.text(name);
            digest.number(value.to_bits());
        }
    }
    digest.hex()
}
