//! Forest plots: values with intervals in rows, with published values.

use std::fmt::Write;

use super::canvas::{self, Frame, RIGHT, WIDTH, cut, text_width};
use super::looks::Legend;
use super::scale::Scale;
use super::{Axis, Interval, Picture};
use crate::html::escape;

/// Height of a row.
const ROW: f64 = 20.0;
/// Space for the names of panels.
const HEAD: f64 = 28.0;
/// Space for the numbers and the title of the axis.
const FOOT: f64 = 46.0;
/// Gaps between names and panels, and between panels, whose last numbers exceed their width.
const GAP: f64 = 18.0;
const PANEL_GAP: f64 = 26.0;
/// Space for marks at both ends of a panel.
const INSET: f64 = 7.0;
/// Maximum width of the names of sections and of rows.
const WIDEST_SECTION: f64 = 235.0;
const WIDEST_NAME: f64 = 150.0;
/// Space for a number below a panel.
const TICK: f64 = 62.0;
/// Half the width of a diamond.
const DIAMOND: f64 = 5.5;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cell {
    value: Option<f64>,
    interval: Option<Interval>,
    published: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    section: String,
    name: String,
    /// By panel.
    cells: Vec<Cell>,
}

/// The section and the name of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForestRow<'a> {
    /// The section; may be empty.
    pub section: &'a str,
    /// The name of the row in its section.
    pub name: &'a str,
}

/// A forest plot: a row for each result, with a mark and its interval; a published value is a diamond on
/// the same line. Rows are grouped in sections. Each panel compares one pair; all panels have the same
/// axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    title: String,
    note: String,
    x: Axis,
    panels: Vec<String>,
    rows: Vec<Row>,
}

impl Forest {
    /// An empty chart with the horizontal axis `x`.
    pub fn new(title: impl Into<String>, x: Axis) -> Self {
        Self {
            title: title.into(),
            note: String::new(),
            x,
            panels: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Sets the note below the chart.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds a value to a row of a panel, unless it is not finite, with an optional confidence interval.
    /// Rows and panels are in the order in which they are added, rows of a section together.
    #[must_use]
    pub fn value(
        mut self,
        panel: &str,
        row: ForestRow<'_>,
        value: f64,
        interval: Option<Interval>,
    ) -> Self {
        if value.is_finite() {
            let cell = self.cell(panel, row);
            cell.value = Some(value);
            cell.interval = interval.filter(Interval::is_finite);
        }
        self
    }

    /// Adds the published value of a row of a panel.
    #[must_use]
    pub fn published(mut self, panel: &str, row: ForestRow<'_>, value: f64) -> Self {
        if value.is_finite() {
            self.cell(panel, row).published = Some(value);
        }
        self
    }

    fn cell(&mut self, panel: &str, ForestRow { section, name }: ForestRow<'_>) -> &mut Cell {
        let known = self.panels.iter().position(|known| known == panel);
        let panel = known.unwrap_or_else(|| {
            self.panels.push(panel.to_owned());
            self.panels.len() - 1
        });
        let is_it = |row: &Row| row.section == section && row.name == name;
        let row = self.rows.iter().position(is_it).unwrap_or_else(|| {
            let is_near = |row: &Row| row.section == section;
            let at = self.rows.iter().rposition(is_near);
            let at = at.map_or(self.rows.len(), |last| last + 1);
            let row = Row {
                section: section.to_owned(),
                name: name.to_owned(),
                cells: Vec::new(),
            };
            self.rows.insert(at, row);
            at
        });
        let cells = &mut self.rows[row].cells;
        cells.resize(cells.len().max(panel + 1), Cell::default());
        &mut cells[panel]
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(|row| &row.cells)
    }

    fn legend(&self, html: &mut String) {
        let mut legend = Legend::new(html);
        if self.cells().any(|cell| cell.value.is_some()) {
            let has_interval = self.cells().any(|cell| cell.interval.is_some());
            let name = match has_interval {
                true => "measured, with its interval",
                false => "measured",
            };
            legend.entry(name, |html| {
                ours(
                    15.0,
                    6.0,
                    has_interval.then_some(Interval {
                        low: 2.0,
                        high: 28.0,
                    }),
                    html,
                );
            });
        }
        if self.cells().any(|cell| cell.published.is_some()) {
            legend.entry("published", |html| published(15.0, 6.0, html));
        }
    }

    fn picture(&self, html: &mut String) {
        let widest = |names: &mut dyn Iterator<Item = &String>, most: f64| {
            let widths = names.map(|name| text_width(name));
            widths.fold(0.0, f64::max).min(most)
        };
        let section = widest(
            &mut self.rows.iter().map(|row| &row.section),
            WIDEST_SECTION,
        );
        let name = widest(&mut self.rows.iter().map(|row| &row.name), WIDEST_NAME);
        let left = 4.0 + section + if section > 0.0 { GAP } else { 0.0 } + name + GAP;
        let panels = self.panels.len() as f64;
        let width = (WIDTH - left - RIGHT - PANEL_GAP * (panels - 1.0)) / panels;
        let height = ROW * self.rows.len() as f64;
        let values = self.cells().flat_map(|cell| {
            let low = cell.interval.map(|interval| interval.low);
            let high = cell.interval.map(|interval| interval.high);
            [cell.value, low, high, cell.published]
        });
        let inner = width - 2.0 * INSET;
        let x = self.x.scale(values.flatten(), inner, TICK);
        canvas::open(WIDTH, HEAD + height + FOOT, &self.title, html);
        self.names(section, left, html);
        for (at, panel) in self.panels.iter().enumerate() {
            let frame = Frame {
                left: left + INSET + (width + PANEL_GAP) * at as f64,
                top: HEAD,
                width: inner,
                height,
            };
            self.panel(at, panel, &frame, &x, html);
        }
        let bottom = HEAD + height;
        let _ = write!(
            html,
            "<text class=\"title end\" x=\"{:.1}\" y=\"{:.1}\">{}</text></svg>",
            WIDTH - RIGHT,
            bottom + 38.0,
            escape(&x.title)
        );
    }

    /// Draws the names of sections and rows, and lines between sections.
    fn names(&self, section: f64, left: f64, html: &mut String) {
        let mut last: Option<&str> = None;
        for (row, top) in self.rows.iter().zip(tops()) {
            let baseline = top + ROW / 2.0 + 4.0;
            if last != Some(&row.section) {
                if last.is_some() {
                    let _ = write!(
                        html,
                        "<path class=\"grid\" d=\"M4 {top:.1}H{:.1}\"/>",
                        WIDTH - RIGHT
                    );
                }
                let _ = write!(
                    html,
                    "<text class=\"title\" x=\"4\" y=\"{baseline:.1}\"><title>{}</title>{}</text>",
                    escape(&row.section),
                    escape(&cut(&row.section, section))
                );
                last = Some(&row.section);
            }
            let _ = write!(
                html,
                "<text class=\"end\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>",
                left - GAP / 2.0,
                escape(&cut(&row.name, WIDEST_NAME))
            );
        }
    }

    fn panel(&self, at: usize, name: &str, frame: &Frame, x: &Scale, html: &mut String) {
        let (top, bottom) = (frame.top, frame.bottom());
        let _ = write!(
            html,
            "<text class=\"title mid\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            frame.left + frame.width / 2.0,
            top - 10.0,
            escape(&cut(name, frame.width + PANEL_GAP))
        );
        frame.vertical_grid(x, bottom, html);
        for (tick, text) in &x.ticks {
            let _ = write!(
                html,
                "<text class=\"mid\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                frame.x(x, *tick),
                bottom + 17.0,
                escape(text)
            );
        }
        let _ = write!(
            html,
            "<path class=\"axis\" d=\"M{:.1} {bottom:.1}H{:.1}\"/>",
            frame.left - INSET,
            frame.right() + INSET
        );
        if (x.from..=x.to).contains(&0.0) {
            let zero = frame.x(x, 0.0);
            let _ = write!(
                html,
                "<path class=\"zero\" d=\"M{zero:.1} {top:.1}V{bottom:.1}\"/>"
            );
        }
        for (row, top) in self.rows.iter().zip(tops()) {
            if let Some(cell) = row.cells.get(at) {
                let y = top + ROW / 2.0;
                self.draw(&format!("{name}: {}", row.words()), cell, frame, x, y, html);
            }
        }
    }

    fn draw(&self, what: &str, cell: &Cell, frame: &Frame, x: &Scale, y: f64, html: &mut String) {
        let text = |value| self.x.unit().text(value);
        let mut words = what.to_owned();
        if let Some(value) = cell.value {
            let _ = write!(words, ", {}", text(value));
        }
        if let Some(Interval { low, high }) = cell.interval {
            let _ = write!(words, ", interval {} to {}", text(low), text(high));
        }
        if let Some(value) = cell.published {
            let _ = write!(words, ", published {}", text(value));
        }
        let _ = write!(html, "<g><title>{}</title>", escape(&words));
        if let Some(value) = cell.value {
            let ends = cell.interval.map(|ends| Interval {
                low: frame.x(x, ends.low),
                high: frame.x(x, ends.high),
            });
            ours(frame.x(x, value), y, ends, html);
        }
        if let Some(value) = cell.published {
            published(frame.x(x, value), y, html);
        }
        html.push_str("</g>");
    }
}

impl Row {
    fn words(&self) -> String {
        match self.section.as_str() {
            "" => self.name.clone(),
            section => format!("{section}, {}", self.name),
        }
    }
}

/// The top edges of rows.
fn tops() -> impl Iterator<Item = f64> {
    (0_u32..).map(|row| HEAD + ROW * f64::from(row))
}

/// Draws a mark, and its interval with whiskers.
fn ours(x: f64, y: f64, ends: Option<Interval>, html: &mut String) {
    if let Some(Interval { low, high }) = ends {
        let _ = write!(
            html,
            "<path class=\"line s0\" d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {:.1}v7M{high:.1} {:.1}v7\"/>",
            y - 3.5,
            y - 3.5
        );
    }
    let _ = write!(
        html,
        "<circle class=\"ours\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.8\"/>"
    );
}

/// Draws an open diamond, which does not hide a mark below it.
fn published(x: f64, y: f64, html: &mut String) {
    let _ = write!(
        html,
        "<path class=\"published open\" d=\"M{x:.1} {:.1}l{DIAMOND} {DIAMOND}l-{DIAMOND} {DIAMOND}l-{DIAMOND}-{DIAMOND}z\"/>",
        y - DIAMOND
    );
}

impl Picture for Forest {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
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
