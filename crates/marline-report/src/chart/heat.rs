//! Heat maps.

use std::fmt::Write;

use super::canvas::{self, Frame, PLOT_WIDTH, RIGHT, TOP, cut, text_width};
use super::cells::Cells;
use super::labels::Labels;
use super::looks::Key;
use super::scale::LARGEST;
use super::{Axis, Picture};
use crate::html::escape;
use crate::units;

const ROW_HEIGHT: f64 = 30.0;
const WIDEST_CELL: f64 = 92.0;
/// A cell must have room for its number.
const NARROWEST_CELL: f64 = 38.0;
/// Room for the names of rows, at most.
const WIDEST_NAME: f64 = 170.0;
/// How much color the weakest and the strongest value have: numbers must stay readable.
const WEAKEST: f64 = 0.04;
const STRONGEST: f64 = 0.62;
/// Shades in the key.
const SHADES: u32 = 5;

/// A heat map: a value for each column and row, as a number on a shade. Values below zero have a
/// shade of another color and a marked corner.
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
    /// An empty picture: `columns` and `rows` are the names of the factors. The ends of `values`,
    /// if fixed, have no shade and the full one; whether it is logarithmic does not matter.
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

    /// Says below the picture what to know about it.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds a value; one that is not finite leaves its cell empty. Columns come in the order of
    /// their first value, from the left, and rows from the top.
    #[must_use]
    pub fn cell(mut self, column: &str, row: &str, value: f64) -> Self {
        *self.cells.entry(column, row) = Some(value).filter(|value| value.is_finite());
        self
    }

    /// The values without and with full shade.
    fn range(&self) -> (f64, f64) {
        let values = self.cells.iter().filter_map(|(_, _, value)| *value);
        let values = values.map(|value| value.clamp(-LARGEST, LARGEST));
        let span = self.values.span().or_else(|| {
            values.fold(None, |range, value| {
                let (low, high) = range.unwrap_or((value, value));
                Some((value.min(low), value.max(high)))
            })
        });
        let (low, high) = span.unwrap_or_default();
        if low < 0.0 {
            (0.0, high.max(-low))
        } else {
            (low, high)
        }
    }

    fn shade(&self, value: f64) -> (char, f64) {
        let (from, to) = self.range();
        let color = if value < 0.0 { 'c' } else { 'w' };
        let value = if value < 0.0 { -value } else { value };
        let share = if to > from {
            ((value - from) / (to - from)).clamp(0.0, 1.0)
        } else {
            0.5
        };
        (color, WEAKEST + share * (STRONGEST - WEAKEST))
    }

    /// A value as it stands in its cell, and what that counts: the same for all cells.
    fn text(&self, value: f64) -> (String, String) {
        let largest = self.range().1.abs();
        let (factor, unit) = self.values.unit().shown(largest);
        (units::aligned(value / factor, largest / factor), unit)
    }

    fn key(&self, html: &mut String) {
        let (from, to) = self.range();
        if from >= to {
            return;
        }
        let lowest = self.cells.iter().filter_map(|(_, _, value)| *value);
        let lowest = lowest.fold(from, f64::min);
        let first = if lowest < 0.0 { -to } else { from };
        let mut key = Key::new(html);
        for n in 0..SHADES {
            let value = first + (to - first) * f64::from(n) / f64::from(SHADES - 1);
            let (color, shade) = self.shade(value);
            let (number, unit) = self.text(value);
            key.entry(&format!("{number} {unit}"), |html| {
                let _ = write!(
                    html,
                    "<rect class=\"cell\" x=\"1\" y=\"1\" width=\"28\" height=\"10\"/>\
                     <rect class=\"{color}\" x=\"1\" y=\"1\" width=\"28\" height=\"10\" fill-opacity=\"{shade:.2}\"/>"
                );
                corner(color, 1.0, 1.0, html);
            });
        }
    }

    fn picture(&self, html: &mut String) {
        let (columns, rows) = (&self.cells.groups, &self.cells.series);
        let names = rows.iter().map(|name| text_width(name)).fold(0.0, f64::max);
        let left = (names.min(WIDEST_NAME) + 16.0).round();
        let room = PLOT_WIDTH + canvas::LEFT - left;
        let cell = (room / columns.len().max(1) as f64).clamp(NARROWEST_CELL, WIDEST_CELL);
        let frame = Frame {
            left,
            top: TOP,
            width: (cell * columns.len() as f64).round(),
            height: ROW_HEIGHT * rows.len() as f64,
        };
        let labels = Labels::new(columns, cell);
        // The titles need their room even where the map is small.
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
        for (column, row, value) in self.cells.iter() {
            let (x, y) = (
                left + column as f64 * cell,
                frame.top + row as f64 * ROW_HEIGHT,
            );
            self.draw((column, row), *value, (x, y, cell), html);
        }
        labels.draw(&frame, html);
        frame.horizontal_title(&self.columns, frame.bottom() + labels.height() + 22.0, html);
        html.push_str("</svg>");
    }

    fn draw(
        &self,
        (column, row): (usize, usize),
        value: Option<f64>,
        (x, y, width): (f64, f64, f64),
        html: &mut String,
    ) {
        let unit = self.values.unit();
        let full = value.map_or_else(|| "no value".to_owned(), |value| unit.text(value));
        let _ = write!(
            html,
            "<g><title>{}, {}: {}</title>",
            escape(&self.cells.groups[column]),
            escape(&self.cells.series[row]),
            escape(&full)
        );
        if let Some((color, shade)) = value.map(|value| self.shade(value)) {
            let _ = write!(
                html,
                "<rect class=\"{color}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{ROW_HEIGHT}\" fill-opacity=\"{shade:.2}\"/>"
            );
            corner(color, x, y, html);
        }
        let text = value.map_or_else(|| "\u{2013}".to_owned(), |value| self.text(value).0);
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

/// Marks what is below zero, for those who do not see its color.
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
        self.cells.iter().all(|cell| cell.2.is_none())
    }

    fn to_html(&self) -> String {
        let (_, unit) = self.text(0.0);
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
            |html| self.key(html),
            |html| self.picture(html),
        )
    }
}

#[cfg(test)]
mod tests;
