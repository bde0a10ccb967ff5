//! The time series of a run, as panels with a common time axis.

use std::collections::BTreeMap;

use marline_report::chart::{Axis, Chart, Stack, Style, Unit};

use crate::scenario::Watched;

use super::names::Quantity;
use super::outliers::Reach;

/// Queues whose maximum stays below this share of the largest are left out.
const MIN_QUEUE_SHARE: f64 = 0.03;

/// Runs share an axis if the largest of their values is at most this many times the smallest: otherwise the lines of one of
/// them would be flat.
const MAX_RATIO: f64 = 3.0;
/// Lines of a panel: of more, their sum or all their points are shown.
const MOST_LINES: usize = 8;
/// The length of axes relative to the last value.
const MARGIN: f64 = 1.02;

type Series = Vec<(f64, f64)>;

/// The series of a run, with a panel for each kind.
pub(super) struct Panels {
    /// Series by kind, then by the rest of their names.
    kinds: BTreeMap<&'static str, Vec<(String, Series)>>,
    moments: Vec<(String, Vec<f64>)>,
}

/// The end of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AxisEnd {
    /// At the same value in all runs of a point.
    Shared(f64),
    /// At the end of the run's own values.
    Own,
}

/// The ends of the axes of the runs of a point.
pub(super) struct SharedEnds {
    /// By kind.
    values: BTreeMap<&'static str, AxisEnd>,
    time: AxisEnd,
    largest_queue: f64,
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
    pub(super) fn of(watched: &Watched) -> Self {
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
        for (kind, series) in &mut kinds {
            let lines = series.iter().filter(|(name, _)| name != "sum");
            if lines.count() > MOST_LINES {
                *series = vec![together(kind, std::mem::take(series))];
            }
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

    /// One connection has its window and its bytes in flight in one panel; several would have too many lines.
    fn is_alone(&self) -> bool {
        self.of_kind("window_bytes").len() == 1 && self.of_kind("in_flight_bytes").len() == 1
    }

    fn of_kind(&self, kind: &str) -> &[(String, Series)] {
        self.kinds.get(kind).map_or(&[][..], Vec::as_slice)
    }

    /// The values of a kind that its axis is for.
    fn reach(&self, kind: &str) -> Reach {
        let with = (kind == "window_bytes" && self.is_alone()).then_some("in_flight_bytes");
        let kinds = std::iter::once(kind).chain(with);
        let series = kinds.flat_map(|kind| self.of_kind(kind));
        let values = series.flat_map(|(_, points)| points.iter().map(|point| point.1));
        match kind {
            "rtt_s" => Reach::of(values),
            // A step function has its extremes for some time.
            _ => {
                let largest = values.fold(0.0, f64::max);
                Reach {
                    top: largest,
                    beyond: 0,
                    largest,
                }
            }
        }
    }

    /// The time of the last value or moment.
    fn end(&self) -> f64 {
        let points = self.kinds.values().flatten();
        let times = points.flat_map(|(_, points)| points.iter().map(|point| point.0));
        let moments = self.moments.iter().flat_map(|(_, times)| times).copied();
        times.chain(moments).fold(0.0, f64::max)
    }

    /// The ends of the axes that all of `runs` share, and the largest queue.
    pub(super) fn shared_ends(runs: &[&Self]) -> SharedEnds {
        let common = |ends: &mut dyn Iterator<Item = f64>| {
            let ends = ends.filter(|end| *end > 0.0);
            let (low, high, count) = ends.fold((f64::INFINITY, 0.0_f64, 0), |known, end| {
                (known.0.min(end), known.1.max(end), known.2 + 1)
            });
            match (count, high <= MAX_RATIO * low) {
                (1.., true) => AxisEnd::Shared(high),
                _ => AxisEnd::Own,
            }
        };
        let values = KINDS.iter().map(|(kind, ..)| {
            let mut ends = runs.iter().map(|panels| panels.reach(kind).top);
            (*kind, common(&mut ends))
        });
        let queues = runs.iter().map(|panels| panels.reach("queue_bytes").top);
        SharedEnds {
            values: values.collect(),
            time: common(&mut runs.iter().map(|panels| panels.end())),
            largest_queue: queues.fold(0.0, f64::max),
        }
    }

    pub(super) fn draw(&self, title: &str, shared: &SharedEnds) -> Stack {
        let (end, own) = match shared.time {
            AxisEnd::Shared(end) => (end, ""),
            AxisEnd::Own => (self.end(), ", own axis"),
        };
        let time = || Axis::new(format!("time{own}"), Unit::Seconds).spanning(0.0, MARGIN * end);
        let is_alone = self.is_alone();
        let mut stack = Stack::new(title, time());
        for (kind, panel, label) in KINDS {
            if kind == "in_flight_bytes" && is_alone {
                continue;
            }
            let quantity = Quantity::of(kind);
            let reach = self.reach(kind);
            let (top, own) = match shared.values.get(kind) {
                Some(AxisEnd::Shared(top)) => (*top, ""),
                _ => (reach.top, ", own axis"),
            };
            let beyond = match reach.largest > MARGIN * top {
                true => format!(
                    ", up to {} beyond the axis",
                    quantity.unit.text(reach.largest)
                ),
                false => String::new(),
            };
            let axis = Axis::new(label, quantity.unit).spanning(0.0, MARGIN * top);
            let mut chart = Chart::new(format!("{panel}{own}{beyond}"), time(), axis);
            let is_visible = |(_, points): &&(String, Series)| {
                let largest = points.iter().map(|point| point.1).fold(0.0, f64::max);
                kind != "queue_bytes" || largest >= MIN_QUEUE_SHARE * shared.largest_queue
            };
            let series = || self.of_kind(kind).iter().filter(is_visible);
            let several = series().count() > 1;
            for (name, points) in series() {
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
                let flight = &self.of_kind("in_flight_bytes")[0].1;
                chart = chart.series("in flight", Style::Area, flight.clone());
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

/// One series instead of many: the last is their sum, if there is one.
fn together(kind: &str, mut series: Vec<(String, Series)>) -> (String, Series) {
    let count = series.len();
    if series.last().is_some_and(|(name, _)| name == "sum")
        && let Some((_, sum)) = series.pop()
    {
        return (format!("sum of {}", count - 1), sum);
    }
    if kind == "rtt_s" {
        let mut points: Series = series.into_iter().flat_map(|(_, points)| points).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        return (format!("all {count}"), points);
    }
    let sum = sum(series.iter().map(|(_, points)| points.as_slice()));
    (format!("sum of {count}"), sum)
}

/// The sum of step functions, each of which is 0 before its first value.
fn sum<'s>(series: impl Iterator<Item = &'s [(f64, f64)]>) -> Series {
    let mut series: Vec<_> = series
        .map(|points| points.iter().copied().peekable())
        .collect();
    let mut values = vec![0.0; series.len()];
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
                *value = changed;
            }
        }
        sums.push((now, values.iter().sum()));
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
    fn windows_are_summed_from_the_first_connection_on() {
        let one = [(0.0, 1.0), (2.0, 3.0), (2.0, 4.0), (5.0, 1.0)];
        let other = [(1.0, 10.0), (2.0, 20.0)];
        assert_eq!(
            sum([&one[..], &other[..]].into_iter()),
            [(0.0, 1.0), (1.0, 11.0), (2.0, 24.0), (5.0, 21.0)]
        );
        assert_eq!(sum([&one[..1], &[]].into_iter()), [(0.0, 1.0)]);
    }

    #[test]
    fn many_connections_have_one_line() {
        let series = |kind: &str| {
            let of = |number| (format!("{kind} {number}"), vec![(f64::from(number), 2.0)]);
            (1..10).map(of).collect::<Vec<_>>()
        };
        let watched = Watched {
            series: [series("window_bytes"), series("rtt_s")]
                .concat()
                .into_iter()
                .collect(),
            ..Watched::default()
        };
        let panels = Panels::of(&watched);
        let [(name, sum)] = panels.of_kind("window_bytes") else {
            panic!("several lines");
        };
        assert_eq!((name.as_str(), sum[8]), ("sum of 9", (9.0, 18.0)));
        let [(name, points)] = panels.of_kind("rtt_s") else {
            panic!("several lines");
        };
        assert_eq!((name.as_str(), points.len()), ("all 9", 9));
    }
}
