//! Charts as SVG, for pages of [`html`](crate::html), whose style sheet they use.
//!
//! - [`Chart`]: lines, steps, areas, scatter plots and distributions over an axis;
//! - [`Stack`]: charts in a column that share an axis, such as time;
//! - [`Boxes`] and [`Bars`]: groups of series, as box plots and as bars with intervals;
//! - [`Forest`]: values with intervals in rows, with published values;
//! - [`Heat`]: a value for each pair of two factors;
//! - [`Waterfall`]: when each object of a page was discovered, requested and received.
//!
//! Each has a link that saves it as an SVG file of its own.
//!
//! Series differ by color and by dashes, marks and patterns, so that they are distinguishable in black
//! and white. Long series are thinned to the resolution of the chart, keeping extremes. Values that are
//! not finite are omitted.

mod axis;
mod bars;
mod boxes;
mod canvas;
mod cells;
mod connection;
mod draw;
mod forest;
mod grouped;
mod heat;
mod labels;
mod looks;
mod scale;
mod stack;
mod standalone;
mod strip;
mod thin;
mod waterfall;

pub use axis::{Axis, Unit};
pub use bars::Bars;
pub use boxes::Boxes;
pub use forest::{Forest, ForestRow};
pub use heat::Heat;
pub use stack::Stack;
pub use waterfall::{Fetch, Waterfall};

use crate::timeline::Series;
use strip::Strip;

/// A closed interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    const fn is_finite(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }
}

/// A chart for [`Report::chart`](crate::Report::chart).
pub trait Picture {
    /// Whether there is nothing to show.
    fn is_empty(&self) -> bool;

    /// The chart as a `figure` element with title and legend; all text is escaped.
    fn to_html(&self) -> String;
}

/// The style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Straight lines between points.
    Line,
    /// Steps: each value holds until the next.
    Steps,
    /// Steps, filled down to the axis: for values that change quickly.
    Area,
    /// Dots only.
    Points,
    /// A mark at each point, different for each series.
    Marks,
}

/// A series.
#[derive(Clone, Debug, PartialEq)]
struct Plot {
    name: String,
    style: Style,
    points: Series,
    /// Points of the line with a mark.
    marks: Series,
}

/// A straight line through the points of a series.
#[derive(Clone, Debug, PartialEq)]
struct Fit {
    series: String,
    name: String,
    slope: f64,
    intercept: f64,
}

/// A chart: series in one frame, and strips of events and states below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    title: String,
    note: String,
    x: Axis,
    y: Axis,
    plots: Vec<Plot>,
    fits: Vec<Fit>,
    strips: Vec<Strip>,
}

/// The shares at which the line of a distribution has a mark.
const MARKED_SHARES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

impl Chart {
    /// An empty chart.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            note: String::new(),
            x,
            y,
            plots: Vec::new(),
            fits: Vec::new(),
            strips: Vec::new(),
        }
    }

    /// Sets the note below the chart.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds a series. Points must be in the order of the horizontal axis, unless they are
    /// [`Style::Marks`]; points that are not finite are omitted, and a series without points is not shown.
    #[must_use]
    pub fn series(self, name: impl Into<String>, style: Style, points: Series) -> Self {
        self.marked_series(name.into(), style, points, Vec::new())
    }

    fn marked_series(
        mut self,
        name: String,
        style: Style,
        mut points: Series,
        marks: Series,
    ) -> Self {
        points.retain(|(x, y)| x.is_finite() && y.is_finite());
        if !points.is_empty() {
            self.plots.push(Plot {
                name,
                style,
                points,
                marks,
            });
        }
        self
    }

    /// Adds points in any order, with marks that differ from series to series.
    #[must_use]
    pub fn scatter(self, name: impl Into<String>, points: Series) -> Self {
        self.series(name, Style::Marks, points)
    }

    /// Adds the line `slope * x + intercept` in the color of the series `series`, without which it is
    /// not shown. `name` describes its quality, such as `fit, r = 0.83`.
    #[must_use]
    pub fn fit(
        mut self,
        series: impl Into<String>,
        name: impl Into<String>,
        slope: f64,
        intercept: f64,
    ) -> Self {
        if slope.is_finite() && intercept.is_finite() {
            self.fits.push(Fit {
                series: series.into(),
                name: name.into(),
                slope,
                intercept,
            });
        }
        self
    }

    /// Adds the empirical distribution function of `samples`, from 0 to 1.
    #[must_use]
    pub fn ecdf(self, name: impl Into<String>, mut samples: Vec<f64>) -> Self {
        samples.retain(|sample| sample.is_finite());
        samples.sort_by(f64::total_cmp);
        let count = samples.len() as f64;
        let first = samples.first().map(|&x| (x, 0.0));
        let steps = samples.iter().zip(1_u32..);
        let points: Series = first
            .into_iter()
            .chain(steps.map(|(&x, n)| (x, f64::from(n) / count)))
            .collect();
        let marks = MARKED_SHARES.iter().filter_map(|&share| {
            let step = points.iter().find(|step| step.1 >= share)?;
            Some((step.0, share))
        });
        let marks = marks.collect();
        self.marked_series(name.into(), Style::Steps, points, marks)
    }

    /// Adds a strip with a tick at each of `times`.
    #[must_use]
    pub fn events(mut self, name: impl Into<String>, times: Vec<f64>) -> Self {
        self.strips.extend(Strip::events(name.into(), times));
        self
    }

    /// Adds a strip of states, each with the time it was entered, in order; the last one ends at `end`.
    #[must_use]
    pub fn states(mut self, name: impl Into<String>, entered: &[(f64, String)], end: f64) -> Self {
        self.strips.extend(Strip::states(name.into(), entered, end));
        self
    }

    /// Whether there is nothing to show.
    pub const fn is_empty(&self) -> bool {
        self.plots.is_empty() && self.strips.is_empty()
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The chart as a `figure` element with its legend.
    pub fn to_html(&self) -> String {
        draw::figure(self)
    }
}

impl Picture for Chart {
    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn to_html(&self) -> String {
        self.to_html()
    }
}

#[cfg(test)]
mod tests;
