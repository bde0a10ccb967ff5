//! Charts as SVG, to stand in a page of [`html`](crate::html), whose style sheet they wear.
//!
//! Series differ by color and by dashes, marks and patterns, so that they can be told apart in
//! black and white. Long series are thinned to what the eye can see, extremes kept.

mod axis;
mod draw;
mod thin;

pub use axis::{Axis, Unit};

use crate::timeline::{PathTimeline, Series, Timeline};

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Straight from point to point.
    Line,
    /// Each value holds until the next.
    Steps,
    /// As steps, filled down to the axis: for values that jump about.
    Area,
    /// Dots only.
    Points,
}

/// Values over the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
struct Plot {
    name: String,
    style: Style,
    points: Series,
}

/// A strip below the plot.
#[derive(Clone, Debug, PartialEq)]
enum Strip {
    /// Moments.
    Moments { name: String, times: Vec<f64> },
    /// Spans from a moment to the next one, each with the number of its name.
    Spans {
        name: String,
        names: Vec<String>,
        spans: Vec<(f64, f64, usize)>,
    },
}

/// A chart: series in one frame, and strips of moments and spans below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    title: String,
    x: Axis,
    y: Axis,
    plots: Vec<Plot>,
    strips: Vec<Strip>,
}

impl Chart {
    /// An empty chart.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            plots: Vec::new(),
            strips: Vec::new(),
        }
    }

    /// Adds a series. Points must be in the order of the horizontal axis; what is not finite is
    /// left out, and a series without points does not show.
    #[must_use]
    pub fn series(mut self, name: impl Into<String>, style: Style, mut points: Series) -> Self {
        points.retain(|(x, y)| x.is_finite() && y.is_finite());
        if !points.is_empty() {
            self.plots.push(Plot {
                name: name.into(),
                style,
                points,
            });
        }
        self
    }

    /// Adds the share of `samples` that are not above each value, from 0 to 1.
    #[must_use]
    pub fn ecdf(self, name: impl Into<String>, mut samples: Vec<f64>) -> Self {
        samples.retain(|sample| sample.is_finite());
        samples.sort_by(f64::total_cmp);
        let count = samples.len() as f64;
        let first = samples.first().map(|&x| (x, 0.0));
        let steps = samples.iter().zip(1_u32..);
        let points = first
            .into_iter()
            .chain(steps.map(|(&x, n)| (x, f64::from(n) / count)))
            .collect();
        self.series(name, Style::Steps, points)
    }

    /// Adds a strip with a tick at each of `times`.
    #[must_use]
    pub fn moments(mut self, name: impl Into<String>, mut times: Vec<f64>) -> Self {
        times.retain(|time| time.is_finite());
        if !times.is_empty() {
            self.strips.push(Strip::Moments {
                name: name.into(),
                times,
            });
        }
        self
    }

    /// Adds a strip of states: when each was entered, in order; the last ends at `end`.
    #[must_use]
    pub fn states(mut self, name: impl Into<String>, entered: &[(f64, String)], end: f64) -> Self {
        let mut names: Vec<String> = Vec::new();
        let ends = entered.iter().skip(1).map(|&(from, _)| from).chain([end]);
        let spans: Vec<_> = entered
            .iter()
            .zip(ends)
            .filter(|((from, _), to)| from.is_finite() && to.is_finite())
            .map(|((from, state), to)| {
                let at = names.iter().position(|known| known == state);
                let at = at.unwrap_or_else(|| {
                    names.push(state.clone());
                    names.len() - 1
                });
                (*from, to, at)
            })
            .collect();
        if !spans.is_empty() {
            self.strips.push(Strip::Spans {
                name: name.into(),
                names,
                spans,
            });
        }
        self
    }

    /// Whether there is nothing to see.
    pub const fn is_empty(&self) -> bool {
        self.plots.is_empty() && self.strips.is_empty()
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The chart as a `figure` element with its key.
    pub fn to_html(&self) -> String {
        draw::figure(self)
    }
}

impl Timeline {
    /// The connection in pictures: for each path its window with states and losses, and its RTT.
    pub fn charts(&self) -> Vec<Chart> {
        let many = self.paths.len() > 1;
        self.paths
            .iter()
            .flat_map(|path| {
                let suffix = match path.tuple.as_str() {
                    _ if !many => String::new(),
                    "" => ", path 0".to_owned(),
                    tuple => format!(", path {tuple}"),
                };
                [self.window(path, &suffix), self.rtt(path, &suffix)]
            })
            .filter(|chart| !chart.is_empty())
            .collect()
    }

    fn time_axis(&self) -> Axis {
        Axis::new("time", Unit::Seconds).spanning(0.0, self.duration_s)
    }

    fn window(&self, path: &PathTimeline, suffix: &str) -> Chart {
        Chart::new(
            format!("Congestion window{suffix}"),
            self.time_axis(),
            Axis::new("window", Unit::Bytes),
        )
        .series(
            "congestion window",
            Style::Steps,
            path.congestion_window.clone(),
        )
        .series("bytes in flight", Style::Area, path.bytes_in_flight.clone())
        .series("slow-start threshold", Style::Steps, path.ssthresh.clone())
        .states("state", &path.states, self.duration_s)
        .moments("lost", path.losses.clone())
        .moments("spurious", path.spurious_losses.clone())
    }

    fn rtt(&self, path: &PathTimeline, suffix: &str) -> Chart {
        Chart::new(
            format!("Round-trip time{suffix}"),
            self.time_axis(),
            Axis::new("RTT", Unit::Seconds),
        )
        .series("smoothed", Style::Steps, path.smoothed_rtt.clone())
        .series("samples", Style::Points, path.latest_rtt.clone())
    }
}

#[cfg(test)]
mod tests;
