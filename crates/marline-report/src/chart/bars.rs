//! Bar charts with intervals.

use std::fmt::Write;

use super::canvas::{self, PLOT_HEIGHT, TICK_HEIGHT, text_width};
use super::cells::{Cells, Place};
use super::grouped::Grouped;
use super::looks::{LOOKS, Legend};
use super::scale::Scale;
use super::{Axis, Interval, Picture};
use crate::html::escape;
use crate::units;

/// Space for numbers beyond the ends of bars, as a share of the range of values.
const HEADROOM: f64 = 0.07;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cell {
    bar: Option<Bar>,
    published: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Bar {
    value: f64,
    interval: Option<Interval>,
}

/// A bar chart: one bar per series in each group, starting at zero, with optional intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    title: String,
    groups: String,
    y: Axis,
    note: String,
    cells: Cells<Cell>,
}

impl Bars {
    /// An empty chart; `groups` names the factor that distinguishes groups, such as `location`.
    pub fn new(title: impl Into<String>, groups: impl Into<String>, y: Axis) -> Self {
        Self {
            title: title.into(),
            groups: groups.into(),
            y,
            note: String::new(),
            cells: Cells::new(),
        }
    }

    /// Sets the note below the chart, such as the meaning of intervals.
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

    /// Adds the value of a series in a group, unless it is not finite, with an optional confidence
    /// interval.
    #[must_use]
    pub fn bar(
        mut self,
        group: &str,
        series: &str,
        value: f64,
        interval: Option<Interval>,
    ) -> Self {
        if value.is_finite() {
            let interval = interval.filter(Interval::is_finite);
            self.cells.entry(group, series).bar = Some(Bar { value, interval });
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
        if self
            .cells
            .iter()
            .any(|c| c.1.bar.is_some_and(|bar| bar.interval.is_some()))
        {
            legend.entry("interval", |html| {
                html.push_str("<path class=\"interval\" d=\"M11 1h8m-4 0v10m-4 0h8\"/>");
            });
        }
        if self.has_published() {
            legend.published();
        }
    }

    /// The vertical scale, with space for numbers beyond the ends of bars.
    fn scale(&self) -> Scale {
        let mut values: Vec<f64> = vec![0.0];
        for (_, cell) in self.cells.iter() {
            let interval = cell.bar.and_then(|bar| bar.interval);
            values.extend(cell.bar.map(|bar| bar.value));
            values.extend(interval.into_iter().flat_map(|ends| [ends.low, ends.high]));
            values.extend(cell.published);
        }
        let low = values.iter().copied().fold(0.0, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let extended = |end: f64| end + end.signum() * HEADROOM * (high - low);
        let ends = [low, high].into_iter().filter(|&end| end != 0.0);
        values.extend(ends.map(extended));
        let values = values.into_iter().filter(|value| value.is_finite());
        self.y.scale(values, PLOT_HEIGHT, TICK_HEIGHT)
    }

    fn picture(&self, html: &mut String) {
        let y = self.scale();
        for row in Grouped::rows(&self.cells, self.has_published()) {
            self.row(&row, &y, html);
        }
    }

    fn row(&self, layout: &Grouped<'_>, y: &Scale, html: &mut String) {
        layout.open(&self.title, &self.groups, y, html);
        let cells = || self.cells.iter().filter(|cell| layout.holds(cell.0.group));
        for (place, cell) in cells() {
            if let Some(bar) = cell.bar {
                let name = format!(
                    "{}, {}",
                    self.cells.series[place.series], self.cells.groups[place.group]
                );
                let _ = write!(
                    html,
                    "<g><title>{}</title>",
                    escape(&self.words(&name, bar))
                );
                draw(bar, layout, place, y, html);
                html.push_str("</g>");
            }
        }
        let (zero, frame) = (layout.frame.y(y, 0.0), &layout.frame);
        let _ = write!(
            html,
            "<path class=\"zero\" d=\"M{} {zero:.1}H{}\"/>",
            frame.left,
            frame.right()
        );
        for (place, cell) in cells() {
            if let Some(value) = cell.published {
                let words = format!(
                    "{}, {}: published {}",
                    self.cells.series[place.series],
                    self.cells.groups[place.group],
                    self.y.unit().text(value)
                );
                layout.published(place, frame.y(y, value), &words, html);
            }
        }
        self.values(layout, y, html);
        html.push_str("</svg>");
    }

    /// Writes the values at the ends of the bars, if there is space for all of them.
    fn values(&self, layout: &Grouped<'_>, y: &Scale, html: &mut String) {
        let largest = y.from.abs().max(y.to.abs());
        let factor = self.y.unit().tick_unit(largest).factor;
        let texts: Vec<_> = self
            .cells
            .iter()
            .filter(|cell| layout.holds(cell.0.group))
            .filter_map(|(place, cell)| {
                let bar = cell.bar?;
                Some((
                    place,
                    bar,
                    units::aligned(bar.value / factor, largest / factor),
                ))
            })
            .collect();
        if texts.iter().any(|text| text_width(&text.2) > layout.lane) {
            return;
        }
        for (place, bar, text) in texts {
            let value = bar.value;
            let interval = bar.interval;
            let Interval { low, high } = interval.unwrap_or(Interval {
                low: value,
                high: value,
            });
            let baseline = if bar.value < 0.0 {
                layout.frame.y(y, low.min(bar.value)) + 13.0
            } else {
                layout.frame.y(y, high.max(bar.value)) - 4.0
            };
            let _ = write!(
                html,
                "<text class=\"halo mid\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>",
                layout.body(place),
                escape(&text)
            );
        }
    }

    fn words(&self, name: &str, bar: Bar) -> String {
        let text = |value| self.y.unit().text(value);
        let interval = bar
            .interval
            .map(|ends| format!(", interval {} to {}", text(ends.low), text(ends.high)));
        format!(
            "{name}: {}{}",
            text(bar.value),
            interval.unwrap_or_default()
        )
    }
}

fn draw(bar: Bar, layout: &Grouped<'_>, place: Place, y: &Scale, html: &mut String) {
    let look = place.series % LOOKS;
    let middle = layout.body(place);
    let (end, zero) = (layout.frame.y(y, bar.value), layout.frame.y(y, 0.0));
    let _ = write!(
        html,
        "<rect class=\"box s{look} f{look}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        middle - layout.body / 2.0,
        end.min(zero),
        layout.body,
        (end - zero).abs()
    );
    if let Some(Interval { low, high }) = bar.interval {
        let (low, high) = (layout.frame.y(y, low), layout.frame.y(y, high));
        let (left, width) = (middle - layout.body / 5.0, layout.body * 0.4);
        let _ = write!(
            html,
            "<path class=\"interval\" d=\"M{left:.1} {high:.1}h{width:.1}M{middle:.1} {high:.1}V{low:.1}M{left:.1} {low:.1}h{width:.1}\"/>"
        );
    }
}

impl Picture for Bars {
    fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    fn to_html(&self) -> String {
        canvas::scrolling(
            &self.title,
            &self.note,
            |html| self.legend(html),
            |html| self.picture(html),
        )
    }
}

#[cfg(test)]
mod tests;
