//! Box plots.

use std::fmt::Write;

use super::canvas::{self, PLOT_HEIGHT, TICK_HEIGHT};
use super::cells::{Cells, Place};
use super::grouped::Grouped;
use super::looks::{LOOKS, Legend};
use super::scale::Scale;
use super::{Axis, Picture, thin};
use crate::html::escape;

/// Outliers closer than this, in pixels, are drawn as one.
const OUTLIER_GAP: f64 = 3.0;
/// Boxes narrower than this, in pixels, have no dot for the mean.
const NARROW: f64 = 10.0;

/// The statistics that a box shows.
#[derive(Clone, Debug, PartialEq)]
struct Spread {
    count: usize,
    mean: f64,
    p5: f64,
    p25: f64,
    median: f64,
    p75: f64,
    p95: f64,
    /// Samples beyond the whiskers.
    outliers: Vec<f64>,
}

impl Spread {
    fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.retain(|sample| sample.is_finite());
        samples.sort_by(f64::total_cmp);
        let count = samples.len();
        let (p5, p95) = (quantile(&samples, 0.05)?, quantile(&samples, 0.95)?);
        // Each sample is divided first and the result clamped, because a sum of large samples may overflow.
        let mean: f64 = samples.iter().map(|sample| sample / count as f64).sum();
        let mean = mean.clamp(*samples.first()?, *samples.last()?);
        Some(Self {
            count,
            mean,
            p5,
            p25: quantile(&samples, 0.25)?,
            median: quantile(&samples, 0.5)?,
            p75: quantile(&samples, 0.75)?,
            p95,
            outliers: samples
                .into_iter()
                .filter(|&sample| sample < p5 || sample > p95)
                .collect(),
        })
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let drawn = [self.p5, self.p95, self.mean];
        drawn.into_iter().chain(self.outliers.iter().copied())
    }
}

/// The quantile of sorted samples, interpolated linearly between the closest ranks.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = share * last as f64;
    let (low, high) = (sorted[rank as usize], sorted[last.min(rank as usize + 1)]);
    let part = rank.fract();
    Some(low * (1.0 - part) + high * part)
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Cell {
    spread: Option<Spread>,
    published: Option<f64>,
}

/// Box plots: a box for each series in each group. Whiskers span the 5th to the 95th percentile, the box
/// the 25th to the 75th; a line marks the median, a dot the mean if the box is wide enough, and dots
/// beyond the whiskers are outliers. Percentiles are interpolated linearly between the closest ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Boxes {
    title: String,
    groups: String,
    y: Axis,
    note: String,
    cells: Cells<Cell>,
}

impl Boxes {
    /// An empty chart; `groups` names the factor that distinguishes groups, such as `object size`.
    pub fn new(title: impl Into<String>, groups: impl Into<String>, y: Axis) -> Self {
        Self {
            title: title.into(),
            groups: groups.into(),
            y,
            note: String::new(),
            cells: Cells::new(),
        }
    }

    /// Sets the note below the chart.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Declares series in advance, so that they have the same order and style in every chart. By default
    /// series are in the order in which they are added.
    #[must_use]
    pub fn series<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        for name in names {
            self.cells.series(name);
        }
        self
    }

    /// Adds the samples of a series in a group; those that are not finite are omitted.
    #[must_use]
    pub fn samples(mut self, group: &str, series: &str, samples: Vec<f64>) -> Self {
        if let Some(spread) = Spread::of(samples) {
            self.cells.entry(group, series).spread = Some(spread);
        }
        self
    }

    /// Adds the published value of a series in a group.
    #[must_use]
    pub fn published(mut self, group: &str, series: &str, value: f64) -> Self {
        if value.is_finite() {
            self.cells.entry(group, series).published = Some(value);
        }
        self
    }

    fn has_published(&self) -> bool {
        self.cells.iter().any(|cell| cell.1.published.is_some())
    }

    fn legend(&self, html: &mut String) {
        let mut legend = Legend::new(html);
        for (at, name) in self.cells.series.iter().enumerate() {
            let look = at % LOOKS;
            legend.fill(name, &format!("box s{look} f{look}"));
        }
        if self.has_published() {
            legend.published();
        }
    }

    fn picture(&self, html: &mut String) {
        let values = self.cells.iter().flat_map(|(_, cell)| {
            let spread = cell.spread.iter().flat_map(Spread::values);
            spread.chain(cell.published)
        });
        let y = self.y.scale(values, PLOT_HEIGHT, TICK_HEIGHT);
        for row in Grouped::rows(&self.cells, self.has_published()) {
            self.row(&row, &y, html);
        }
    }

    fn row(&self, layout: &Grouped<'_>, y: &Scale, html: &mut String) {
        layout.open(&self.title, &self.groups, y, html);
        let cells = || self.cells.iter().filter(|cell| layout.holds(cell.0.group));
        for (place, cell) in cells() {
            if let Some(spread) = &cell.spread {
                let name = format!(
                    "{}, {}",
                    self.cells.series[place.series], self.cells.groups[place.group]
                );
                let _ = write!(
                    html,
                    "<g><title>{}</title>",
                    escape(&self.words(&name, spread))
                );
                draw(spread, layout, place, y, html);
                html.push_str("</g>");
            }
        }
        for (place, cell) in cells() {
            if let Some(value) = cell.published {
                let at = layout.frame.y(y, value);
                let words = format!(
                    "{}, {}: published {}",
                    self.cells.series[place.series],
                    self.cells.groups[place.group],
                    self.y.unit().text(value)
                );
                layout.published(place, at, &words, html);
            }
        }
        html.push_str("</svg>");
    }

    fn words(&self, name: &str, spread: &Spread) -> String {
        let text = |value| self.y.unit().text(value);
        format!(
            "{name}: median {}, mean {}, p25 to p75 {} to {}, p5 to p95 {} to {}, {} samples",
            text(spread.median),
            text(spread.mean),
            text(spread.p25),
            text(spread.p75),
            text(spread.p5),
            text(spread.p95),
            spread.count,
        )
    }
}

fn draw(spread: &Spread, layout: &Grouped<'_>, place: Place, y: &Scale, html: &mut String) {
    let look = place.series % LOOKS;
    let middle = layout.body(place);
    let (left, right) = (middle - layout.body / 2.0, middle + layout.body / 2.0);
    let cap = layout.body / 4.0;
    let at = |value| layout.frame.y(y, value);
    let outliers = spread.outliers.iter().map(|&outlier| at(outlier));
    let _ = write!(html, "<path class=\"dots s{look}\" d=\"");
    for outlier in thin::positions(outliers, OUTLIER_GAP) {
        let _ = write!(html, "M{middle:.1} {outlier:.1}h0");
    }
    html.push_str("\"/>");
    let (p5, p25, p75, p95) = (
        at(spread.p5),
        at(spread.p25),
        at(spread.p75),
        at(spread.p95),
    );
    let (cap_left, cap_width) = (middle - cap, 2.0 * cap);
    let _ = write!(
        html,
        "<path class=\"whisker s{look}\" d=\"M{cap_left:.1} {p95:.1}h{cap_width:.1}M{middle:.1} {p95:.1}V{p75:.1}\
         M{middle:.1} {p25:.1}V{p5:.1}M{cap_left:.1} {p5:.1}h{cap_width:.1}\"/>\
         <rect class=\"box s{look} f{look}\" x=\"{left:.1}\" y=\"{p75:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
         <path class=\"median\" d=\"M{left:.1} {median:.1}H{right:.1}\"/>",
        layout.body,
        (p25 - p75).max(0.5),
        median = at(spread.median),
    );
    if layout.body >= NARROW {
        let _ = write!(
            html,
            "<circle class=\"mean\" cx=\"{middle:.1}\" cy=\"{:.1}\" r=\"{:.1}\"/>",
            at(spread.mean),
            (layout.body * 0.14).min(3.0)
        );
    }
}

impl Picture for Boxes {
    fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    fn to_html(&self) -> String {
        let mut rows = Grouped::rows(&self.cells, self.has_published());
        let has_dots = rows.all(|row| row.body >= NARROW);
        let note = format!(
            "{} Box: 25th to 75th percentile; line: median; {}whiskers: 5th to 95th percentile.",
            self.note,
            if has_dots { "dot: mean; " } else { "" }
        );
        canvas::scrolling(
            &self.title,
            note.trim_start(),
            |html| self.legend(html),
            |html| self.picture(html),
        )
    }
}

#[cfg(test)]
mod tests;
