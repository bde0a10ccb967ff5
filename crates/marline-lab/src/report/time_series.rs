//! Single runs over time.

use std::collections::BTreeMap;

use marline_report::Report;
use marline_report::chart::{Axis, Chart, Fetch, Picture, Stack, Style, Unit, Waterfall};

use crate::run::Record;
use crate::scenario::Watched;

use super::data::ReportData;
use super::names::Quantity;

/// Runs that are shown at once; others are folded.
const SHOWN: usize = 6;
/// Most runs that are shown at all, to limit the size of the page.
const MAX_RUNS: usize = 24;

/// Queues whose maximum stays below this share of the largest are left out.
const MIN_QUEUE_SHARE: f64 = 0.03;

type Series = Vec<(f64, f64)>;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let mut runs = Vec::new();
    for point in by_size(data) {
        let watched: Vec<_> = data
            .variants()
            .filter_map(|(variant, name)| {
                let mut runs = data.runs(point, variant).iter();
                let (run, watched) = runs.find_map(|run| Some((run, run.series.as_ref()?)))?;
                Some((
                    data.points.at(name, point),
                    run,
                    watched,
                    Panels::of(watched),
                ))
            })
            .collect();
        let most = Panels::maxima(watched.iter().map(|(.., panels)| panels));
        runs.extend(
            watched
                .into_iter()
                .map(|(title, run, watched, panels)| Run {
                    stack: panels.draw(&title, &most),
                    waterfall: waterfall(&title, run, watched),
                }),
        );
    }
    runs.truncate(MAX_RUNS);
    runs.retain(|run| !run.stack.is_empty() || !run.waterfall.is_empty());
    if runs.is_empty() {
        return page;
    }
    let (shown, hidden) = runs.split_at(runs.len().min(SHOWN));
    let all = |page: Report, runs: &[Run]| {
        runs.iter().fold(page, |page, run| {
            page.chart(&run.stack).chart(&run.waterfall)
        })
    };
    let page = page.section("Single runs over time").text(
        "The first repeat of each variant: at one point, all variants have the same seed and the same axes. \
         Vertical lines mark losses and actions of a bundle's engine; queues that stay almost empty are left \
         out.",
    );
    let page = all(page, shown);
    match hidden.len() {
        0 => page,
        more => page.details(&format!("{more} more runs"), |page| all(page, hidden)),
    }
}

/// The charts of a run.
struct Run {
    stack: Stack,
    /// Empty unless a page was loaded.
    waterfall: Waterfall,
}

/// A waterfall of the objects of a page.
fn waterfall(title: &str, run: &Record, watched: &Watched) -> Waterfall {
    let mut waterfall = Waterfall::new(format!("{title}, object by object"));
    if watched.objects.is_empty() {
        return waterfall;
    }
    for object in &watched.objects {
        waterfall = waterfall.fetch(Fetch {
            name: object.name.clone(),
            discovered_s: object.discovered_s,
            requested_s: object.requested_s,
            connected_s: object.connected_s,
            first_byte_s: object.first_byte_s,
            finished_s: object.finished_s,
        });
    }
    for (metric, moment) in [("first_render_s", "rendered"), ("page_load_s", "loaded")] {
        if let Some(&at) = run.metrics.get(metric) {
            waterfall = waterfall.event(moment, at);
        }
    }
    waterfall
}

/// Indices of points, by descending median of the main metric.
fn by_size(data: &ReportData) -> Vec<usize> {
    let metric = data.main_metric();
    let size = |point: usize| {
        let medians = data.variants().filter_map(|(variant, _)| {
            let summary = data.cell(point, variant)?.metrics.get(metric)?;
            Some(summary.median)
        });
        medians.fold(f64::NEG_INFINITY, f64::max)
    };
    let mut points: Vec<_> = (0..data.points.len())
        .map(|point| (point, size(point)))
        .collect();
    points.sort_by(|a, b| b.1.total_cmp(&a.1));
    points.into_iter().map(|(point, _)| point).collect()
}

/// The series of a run, with a panel for each kind.
struct Panels {
    /// Series by kind, then by the rest of their names.
    kinds: BTreeMap<&'static str, Vec<(String, Series)>>,
    moments: Vec<(String, Vec<f64>)>,
}

/// The kinds in the order in which they are shown: prefix of the name, title of the panel, label of the axis.
const KINDS: [(&str, &str, &str); 6] = [
    ("window_bytes", "Congestion window", "window"),
    ("in_flight_bytes", "In flight", "in flight"),
    ("rtt_s", "Round-trip time", "RTT"),
    ("queue_bytes", "Queue", "queued"),
    ("goodput_mbps", "Goodput", "rate"),
    ("rate_mbps", "Rate", "rate"),
];

/// Actions of a bundle's engine: name of the moments, short label, description.
const ENGINE_ACTIONS: [(&str, &str, &str); 4] = [
    (
        "synchronized",
        "synced",
        "windows and slow start of all connections were synchronized after a fluctuation event",
    ),
    (
        "exited",
        "exited",
        "slow start was ended for all connections",
    ),
    ("equalized", "equal", "windows or rates were made equal"),
    (
        "backed_off",
        "backoff",
        "all connections backed off as one connection would",
    ),
];

impl Panels {
    fn of(watched: &Watched) -> Self {
        let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (name, series) in &watched.series {
            let (kind, rest) = name.split_once(' ').unwrap_or((name, ""));
            let Some((kind, ..)) = KINDS.iter().find(|(known, ..)| *known == kind) else {
                continue;
            };
            let quantity = Quantity::of(kind);
            let points = from_start(series, *kind == "rtt_s");
            let points: Series = points
                .into_iter()
                .map(|(at, value)| (at, quantity.base(value)))
                .collect();
            if !points.is_empty() {
                kinds
                    .entry(*kind)
                    .or_default()
                    .push((series_label(rest), points));
            }
        }
        if let Some(windows) = kinds.get_mut("window_bytes")
            && windows.len() > 1
        {
            let sum = sum(windows.iter().map(|(_, points)| points.as_slice()));
            windows.push(("sum".to_owned(), sum));
        }
        let moments = watched.moments.iter().map(|(name, times)| {
            if let Some((_, short, _)) = ENGINE_ACTIONS.iter().find(|(action, ..)| action == name) {
                return ((*short).to_owned(), shown(times));
            }
            let (what, rest) = name.split_once(' ').unwrap_or((name, ""));
            let name = match rest {
                "" => what.to_owned(),
                rest => match rest.strip_prefix("path ") {
                    Some(path) => format!("{what} {path}"),
                    None => format!("{what} #{rest}"),
                },
            };
            (name, shown(times))
        });
        Self {
            moments: moments.collect(),
            kinds,
        }
    }

    /// The last time, and the largest value of each kind, in any of `runs`.
    fn maxima<'p>(runs: impl Iterator<Item = &'p Self>) -> BTreeMap<&'static str, f64> {
        let mut most = BTreeMap::new();
        let mut raise = |kind, value: f64| {
            let known = most.entry(kind).or_insert(0.0_f64);
            *known = known.max(value);
        };
        for panels in runs {
            for (kind, series) in &panels.kinds {
                for &(at, value) in series.iter().flat_map(|(_, points)| points) {
                    raise("time", at);
                    raise(kind, value);
                }
            }
            for &at in panels.moments.iter().flat_map(|(_, times)| times) {
                raise("time", at);
            }
        }
        most
    }

    fn draw(&self, title: &str, most: &BTreeMap<&'static str, f64>) -> Stack {
        let end = |kind: &str| 1.02 * most.get(kind).copied().unwrap_or_default();
        let time = || Axis::new("time", Unit::Seconds).spanning(0.0, end("time"));
        let of = |kind| self.kinds.get(kind).map_or(&[][..], Vec::as_slice);
        // One connection has its window and its bytes in flight in one panel; several would have too many
        // lines.
        let flights = of("in_flight_bytes");
        let is_alone = of("window_bytes").len() == 1 && flights.len() == 1;
        let mut stack = Stack::new(title, time());
        for (kind, panel, label) in KINDS {
            if kind == "in_flight_bytes" && is_alone {
                continue;
            }
            let quantity = Quantity::of(kind);
            let mut top = end(kind);
            if kind == "window_bytes" && is_alone {
                top = top.max(end("in_flight_bytes"));
            }
            let axis = Axis::new(label, quantity.unit).spanning(0.0, top);
            let mut chart = Chart::new(panel, time(), axis);
            let is_visible = |(_, points): &&(String, Series)| {
                let largest = points.iter().map(|point| point.1).fold(0.0, f64::max);
                kind != "queue_bytes" || largest >= MIN_QUEUE_SHARE * top
            };
            let several = of(kind).iter().filter(is_visible).count() > 1;
            for (name, points) in of(kind).iter().filter(is_visible) {
                let style = match kind {
                    "rtt_s" => Style::Points,
                    "queue_bytes" if !several => Style::Area,
                    _ => Style::Steps,
                };
                let name = match name.as_str() {
                    "" => label,
                    name => name,
                };
                chart = chart.series(name, style, points.clone());
            }
            if kind == "window_bytes" && is_alone {
                chart = chart.series("in flight", Style::Area, flights[0].1.clone());
            }
            stack = stack.chart(chart);
        }
        for (name, times) in &self.moments {
            stack = stack.events(name.as_str(), times.clone());
        }
        let actions = self.engine_actions();
        match actions.is_empty() {
            true => stack,
            false => stack.note(format!("The engine of the bundle: {}.", actions.join("; "))),
        }
    }

    /// Descriptions of the marks of the engine.
    fn engine_actions(&self) -> Vec<String> {
        let happened = |short: &str| {
            let mut moments = self.moments.iter();
            moments.any(|(name, times)| name == short && !times.is_empty())
        };
        let actions = ENGINE_ACTIONS
            .iter()
            .filter(|(_, short, _)| happened(short));
        actions
            .map(|(_, short, words)| format!("{short}: {words}"))
            .collect()
    }
}

/// The times that are not before the start of the clock.
fn shown(times: &[f64]) -> Vec<f64> {
    times.iter().copied().filter(|at| *at >= 0.0).collect()
}

/// The sum of step functions, from when all of them have a value.
fn sum<'s>(series: impl Iterator<Item = &'s [(f64, f64)]>) -> Series {
    let mut series: Vec<_> = series
        .map(|points| points.iter().copied().peekable())
        .collect();
    let mut values: Vec<Option<f64>> = vec![None; series.len()];
    let mut sums = Series::new();
    loop {
        let nexts = series
            .iter_mut()
            .filter_map(|points| points.peek().map(|point| point.0));
        let Some(now) = nexts.min_by(f64::total_cmp) else {
            return sums;
        };
        for (points, value) in series.iter_mut().zip(&mut values) {
            while let Some((_, changed)) = points.next_if(|point| point.0 <= now) {
                *value = Some(changed);
            }
        }
        sums.extend(
            values
                .iter()
                .copied()
                .sum::<Option<f64>>()
                .map(|sum| (now, sum)),
        );
    }
}

/// The label of a series: the number of its connection, or the rest of its name.
fn series_label(rest: &str) -> String {
    match rest.parse::<usize>() {
        Ok(number) => format!("connection {number}"),
        Err(_) => rest.to_owned(),
    }
}

/// The part of a series from the start of the clock. A step function keeps its value at the start; earlier
/// samples are dropped.
fn from_start(series: &[(f64, f64)], are_samples: bool) -> Series {
    let first = series.partition_point(|(at, _)| *at < 0.0);
    let held = first.checked_sub(1).map(|last| (0.0, series[last].1));
    held.filter(|_| !are_samples)
        .into_iter()
        .chain(series[first..].iter().copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_summed_from_when_all_have_a_value() {
        let one = [(0.0, 1.0), (2.0, 3.0), (2.0, 4.0), (5.0, 1.0)];
        let other = [(1.0, 10.0), (2.0, 20.0)];
        assert_eq!(
            sum([&one[..], &other[..]].into_iter()),
            [(1.0, 11.0), (2.0, 24.0), (5.0, 21.0)]
        );
        assert_eq!(sum([&one[..], &[]].into_iter()), []);
    }
}
