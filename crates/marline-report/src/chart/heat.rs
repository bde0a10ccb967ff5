//! Heat maps.

use std::fmt::Write;

use super::axis::TickUnit;
use super::canvas::{self, Frame, PLOT_WIDTH, RIGHT, TOP, cut, text_width};
use super::cells::{Cells, Place};
use super::labels::Labels;
use super::looks::Legend;
use super::scale::LARGEST;
use super::{Axis, Interval, Picture};
use crate::html::escape;
use crate::units;

const ROW_HEIGHT: f64 = 30.0;
const WIDEST_CELL: f64 = 92.0;
/// A cell must be wide enough for its number.
const NARROWEST_CELL: f64 = 38.0;
/// Maximum space for the names of rows.
const WIDEST_NAME: f64 = 170.0;
/// Opacity of the weakest and the strongest value, such that numbers stay readable.
const WEAKEST: f64 = 0.04;
const STRONGEST: f64 = 0.62;
/// Number of shades in the legend.
const SHADES: u32 = 5;

/// A heat map: a value for each column and row, as a number on a shade. Values below zero have another
/// color and a marked corner.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    title: String,
    columns: String,
    rows: String,
    values: Axis,
    note: String,
    cells: Cells<Option<f64>>,
}

impl Heat {
    /// An empty chart; `columns` and `rows` name the factors. Fixed ends of `values` set the range of
    /// shades; whether the axis is logarithmic has no effect.
    pub fn new(
        title: impl Into<String>,
        columns: impl Into<String>,
        rows: impl Into<String>,
        values: Axis,
    ) -> Self {
        Self {
            title: title.into(),
            columns: columns.into(),
            rows: rows.into(),
            values,
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

    /// Adds a value; one that is not finite leaves its cell empty. Columns and rows are in the order of
    /// first use, from the left and from the top.
    #[must_use]
    pub fn cell(mut self, column: &str, row: &str, value: f64) -> Self {
        *self.cells.entry(column, row) = Some(value).filter(|value| value.is_finite());
        self
    }

    /// The values without shade and with full shade.
    fn range(&self) -> Interval {
        let values = self.cells.iter().filter_map(|(_, value)| *value);
        let values = values.map(|value| value.clamp(-LARGEST, LARGEST));
        let span = self.values.span().or_else(|| {
            values.fold(None, |range, value| {
                let Interval { low, high } = range.unwrap_or(Interval {
                    low: value,
                    high: value,
                });
                Some(Interval {
                    low: value.min(low),
                    high: value.max(high),
                })
            })
        });
        let Interval { low, high } = span.unwrap_or_default();
        if low < 0.0 {
            Interval {
                low: 0.0,
                high: high.max(-low),
            }
        } else {
            Interval { low, high }
        }
    }

    fn shade(&self, value: f64) -> Shade {
        let Interval {
            low: from,
            high: to,
        } = self.range();
        let color = if value < 0.0 { 'c' } else { 'w' };
        let value = if value < 0.0 { -value } else { value };
        let share = if to > from {
            ((value - from) / (to - from)).clamp(0.0, 1.0)
        } else {
            0.5
        };
        Shade {
            color,
            opacity: WEAKEST + share * (STRONGEST - WEAKEST),
        }
    }

    /// The number in a cell, and its unit, which is the same for all cells.
    fn text(&self, value: f64) -> CellText {
        let largest = self.range().high.abs();
        let TickUnit { factor, symbol } = self.values.unit().tick_unit(largest);
        CellText {
            number: units::aligned(value / factor, largest / factor),
            unit: symbol,
        }
    }

    fn legend(&self, html: &mut String) {
        let Interval {
            low: from,
            high: to,
        } = self.range();
        if from >= to {
            return;
        }
        let lowest = self.cells.iter().filter_map(|(_, value)| *value);
        let lowest = lowest.fold(from, f64::min);
        let first = if lowest < 0.0 { -to } else { from };
        let mut legend = Legend::new(html);
        for n in 0..SHADES {
            let value = first + (to - first) * f64::from(n) / f64::from(SHADES - 1);
            let Shade { color, opacity } = self.shade(value);
            let CellText { number, unit } = self.text(value);
            legend.entry(&format!("{number} {unit}"), |html| {
                let _ = write!(
                    html,
                    "<rect class=\"cell\" x=\"1\" y=\"1\" width=\"28\" height=\"10\"/>\
                     <rect class=\"{color}\" x=\"1\" y=\"1\" width=\"28\" height=\"10\" fill-opacity=\"{opacity:.2}\"/>"
                );
                corner(color, 1.0, 1.0, html);
            });
        }
    }

    fn picture(&self, html: &mut String) {
        let (columns, rows) = (&self.cells.groups, &self.cells.series);
        let names = rows.iter().map(|name| text_width(name)).fold(0.0, f64::max);
        let left = (names.min(WIDEST_NAME) + 16.0).round();
        let space = PLOT_WIDTH + canvas::LEFT - left;
        let cell = (space / columns.len().max(1) as f64).clamp(NARROWEST_CELL, WIDEST_CELL);
        let frame = Frame {
            left,
            top: TOP,
            width: (cell * columns.len() as f64).round(),
            height: ROW_HEIGHT * rows.len() as f64,
        };
        let labels = Labels::new(columns, cell);
        // The titles need their space even if the map is small.
        let titles = text_width(&self.rows).max(text_width(&self.columns));
        let width = (frame.right() + RIGHT).max(titles + left + RIGHT);
        let height = frame.bottom() + labels.height() + 30.0;
        canvas::open(width.round(), height, &self.title, html);
        let _ = write!(
            html,
            "<text class=\"title\" x=\"4\" y=\"13\">{}</text>",
            escape(&self.rows)
        );
        for (at, name) in rows.iter().enumerate() {
            let _ = write!(
                html,
                "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\"><title>{}</title>{}</text>",
                left - 8.0,
                frame.top + (at as f64 + 0.5) * ROW_HEIGHT + 4.0,
                escape(name),
                escape(&cut(name, WIDEST_NAME))
            );
        }
        for (place, value) in self.cells.iter() {
            let rect = Frame {
                left: left + place.group as f64 * cell,
                top: frame.top + place.series as f64 * ROW_HEIGHT,
                width: cell,
                height: ROW_HEIGHT,
            };
            self.draw(place, *value, &rect, html);
        }
        labels.draw(&frame, html);
        frame.horizontal_title(&self.columns, frame.bottom() + labels.height() + 22.0, html);
        html.push_str("</svg>");
    }

    fn draw(&self, place: Place, value: Option<f64>, rect: &Frame, html: &mut String) {
        let (x, y, width) = (rect.left, rect.top, rect.width);
        let unit = self.values.unit();
        let full = value.map_or_else(|| "no value".to_owned(), |value| unit.text(value));
        let _ = write!(
            html,
            "<g><title>{}, {}: {}</title>",
            escape(&self.cells.groups[place.group]),
            escape(&self.cells.series[place.series]),
            escape(&full)
        );
        if let Some(Shade { color, opacity }) = value.map(|value| self.shade(value)) {
            let _ = write!(
                html,
                "<rect class=\"{color}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{ROW_HEIGHT}\" fill-opacity=\"{opacity:.2}\"/>"
            );
            corner(color, x, y, html);
        }
        let text = value.map_or_else(|| "\u{2013}".to_owned(), |value| self.text(value).number);
        let _ = write!(
            html,
            "<rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{ROW_HEIGHT}\"/>\
             <text class=\"value mid\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            x + width / 2.0,
            y + ROW_HEIGHT / 2.0 + 4.0,
            escape(&cut(&text, width))
        );
    }
}

/// The fill of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shade {
    /// The class of its color.
    color: char,
    /// From 0 to 1.
    opacity: f64,
}

/// The number in a cell and its unit.
struct CellText {
    number: String,
    unit: String,
}

/// Marks a value below zero independently of its color.
fn corner(color: char, x: f64, y: f64, html: &mut String) {
    if color == 'c' {
        let _ = write!(
            html,
            "<path class=\"corner\" d=\"M{x:.1} {y:.1}h8l-8 8z\"/>"
        );
    }
}

impl Picture for Heat {
    fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.1.is_none())
    }

    fn to_html(&self) -> String {
        let unit = self.text(0.0).unit;
        let unit = if unit.is_empty() {
            String::new()
        } else {
            format!(" in {unit}")
        };
        let mut note = format!("Numbers: {}{unit}.", self.values.label());
        if !self.note.is_empty() {
            note = format!("{} {note}", self.note);
        }
        canvas::scrolling(
            &self.title,
            &note,
            |html| self.legend(html),
            |html| self.picture(html),
        )
    }
}

#[cfg(test)]
mod tests;
