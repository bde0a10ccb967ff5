//! Layout of charts, and their axes.

use std::fmt::Write;

use super::scale::Scale;
use super::standalone;
use crate::html::{escape, plain, prose};

/// Width of a chart, in SVG units; the page scales it.
pub(super) const WIDTH: f64 = 920.0;
/// Space for the numbers of the vertical axis and the names of strips.
pub(super) const LEFT: f64 = 66.0;
pub(super) const RIGHT: f64 = 18.0;
/// Space for the title of the vertical axis.
pub(super) const TOP: f64 = 26.0;
pub(super) const PLOT_HEIGHT: f64 = 230.0;
/// Space for the numbers and the title of the horizontal axis.
pub(super) const BOTTOM: f64 = 42.0;
pub(super) const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;
/// Approximate width of a letter.
pub(super) const LETTER: f64 = 7.0;
/// Space for a number on the horizontal axis, and on the vertical one.
pub(super) const TICK_WIDTH: f64 = 90.0;
pub(super) const TICK_HEIGHT: f64 = 46.0;

/// The plot area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame {
    /// The plot area of a chart with axes, `height` high.
    pub(super) const fn with_height(height: f64) -> Self {
        Self {
            left: LEFT,
            top: TOP,
            width: PLOT_WIDTH,
            height,
        }
    }

    pub(super) const fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) const fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + scale.at(value)
    }

    pub(super) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom() - scale.at(value)
    }

    /// Draws the vertical axis: grid, numbers and title.
    pub(super) fn vertical_axis(&self, y: &Scale, html: &mut String) {
        for (tick, text) in &y.ticks {
            let at = self.y(y, *tick);
            let _ = write!(
                html,
                "<path class=\"grid\" d=\"M{} {at:.1}H{}\"/>\
                 <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                self.left,
                self.right(),
                self.left - 8.0,
                at + 4.0,
                escape(text)
            );
        }
        let _ = write!(
            html,
            "<text class=\"title\" x=\"4\" y=\"{:.1}\">{}</text>",
            self.top - 13.0,
            escape(&y.title)
        );
    }

    /// Draws the grid of the horizontal axis, down to `bottom`.
    pub(super) fn vertical_grid(&self, x: &Scale, bottom: f64, html: &mut String) {
        for (tick, _) in &x.ticks {
            let _ = write!(
                html,
                "<path class=\"grid\" d=\"M{:.1} {}V{bottom}\"/>",
                self.x(x, *tick),
                self.top
            );
        }
    }

    /// Draws the numbers and the title of the horizontal axis, below `bottom`, in a chart of width `width`.
    pub(super) fn horizontal_numbers(&self, x: &Scale, bottom: f64, width: f64, html: &mut String) {
        for (tick, text) in &x.ticks {
            let at = self.x(x, *tick);
            let at_edge = width - at < text_width(text) / 2.0;
            let _ = write!(
                html,
                "<text class=\"{}\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
                if at_edge { "end" } else { "mid" },
                bottom + 17.0,
                escape(text)
            );
        }
        self.horizontal_title(&x.title, bottom + 35.0, html);
    }

    /// Draws the title of the horizontal axis, at its end.
    pub(super) fn horizontal_title(&self, title: &str, baseline: f64, html: &mut String) {
        let _ = write!(
            html,
            "<text class=\"title end\" x=\"{}\" y=\"{baseline:.1}\">{}</text>",
            self.right(),
            escape(title),
        );
    }

    /// Draws the lines of both axes.
    pub(super) fn lines(&self, html: &mut String) {
        let _ = write!(
            html,
            "<path class=\"axis\" d=\"M{} {}V{}H{}\"/>",
            self.left,
            self.top,
            self.bottom(),
            self.right()
        );
    }
}

/// Opens an SVG element; `label` is for screen readers.
pub(super) fn open(width: f64, height: f64, label: &str, html: &mut String) {
    html.push_str("<svg class=\"chart\"");
    // The font size is the same in charts of every width.
    if width != WIDTH {
        let share = width / WIDTH;
        let _ = write!(
            html,
            " style=\"width:{:.2}%;min-width:{:.1}rem\"",
            share * 100.0,
            share * 36.0
        );
    }
    let _ = write!(
        html,
        " viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">",
        plain(label)
    );
}

/// Writes a figure element: title, content, note, and a link that saves it as a file.
pub(super) fn figure(
    title: &str,
    note: &str,
    html: &mut String,
    content: impl FnOnce(&mut String),
) {
    let _ = write!(html, "<figure><figcaption>{}</figcaption>", prose(title));
    let start = html.len();
    content(html);
    let link = standalone::link(title, note, &html[start..]);
    if !note.is_empty() {
        let _ = write!(html, "<p class=\"note\">{}</p>", prose(note));
    }
    html.push_str(&link);
    html.push_str("</figure>\n");
}

/// A figure with its legend above a chart that scrolls if it is too wide.
pub(super) fn scrolling(
    title: &str,
    note: &str,
    legend: impl FnOnce(&mut String),
    picture: impl FnOnce(&mut String),
) -> String {
    let mut html = String::new();
    figure(title, note, &mut html, |html| {
        legend(html);
        html.push_str("<div class=\"scroll\">");
        picture(html);
        html.push_str("</div>");
    });
    html
}

/// Approximate width of a text.
pub(super) fn text_width(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// A text cut to a width, with an ellipsis if it was cut.
pub(super) fn cut(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let letters = (width / LETTER) as usize;
    let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
    format!("{}\u{2026}", kept.trim_end())
}
