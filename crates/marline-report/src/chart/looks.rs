//! Colors, dashes, marks and patterns of series, as defined in the style sheet.

use std::fmt::Write;

use crate::html::escape;

/// Number of distinct styles.
pub(super) const LOOKS: usize = 12;

/// Adds the mark of a style around a point to a path.
pub(super) fn outline(look: usize, x: f64, y: f64, html: &mut String) {
    let figure = match look % LOOKS {
        0 => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
        1 => "m-2.7-2.7h5.4v5.4h-5.4z",
        2 => "m0-3.4l3.2 5.8h-6.4z",
        3 => "m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z",
        4 => "m-3-3l6 6m0-6l-6 6",
        5 => "m-3.5 0h7m-3.5-3.5v7",
        6 => "m0 3.4l3.2-5.8h-6.4z",
        7 => "m-3-3h6l-6 6h6z",
        8 => "m-3.4 0l5.8-3.2v6.4z",
        9 => "m3.4 0l-5.8-3.2v6.4z",
        10 => "m-2.7-2.7h5.4v5.4h-5.4zl5.4 5.4",
        _ => "m-3-3v6l6-6v6z",
    };
    let _ = write!(html, "M{x:.1} {y:.1}{figure}");
}

/// Draws the mark of a style around a point.
pub(super) fn mark(look: usize, x: f64, y: f64, html: &mut String) {
    let _ = write!(html, "<path class=\"mark s{}\" d=\"", look % LOOKS);
    outline(look, x, y, html);
    html.push_str("\"/>");
}

/// Draws the mark of a published value: a diamond whose half width is `size`.
pub(super) fn published(x: f64, y: f64, size: f64, html: &mut String) {
    let _ = write!(
        html,
        "<path class=\"published\" d=\"M{x:.1} {:.1}l{size:.1} {size:.1}l-{size:.1} {size:.1}l-{size:.1}-{size:.1}z\"/>",
        y - size
    );
}

/// A legend under construction.
#[derive(Debug)]
pub(super) struct Legend<'h>(&'h mut String);

impl<'h> Legend<'h> {
    pub(super) fn new(html: &'h mut String) -> Self {
        html.push_str("<ul class=\"key\">");
        Self(html)
    }

    /// Adds an entry: `swatch` draws into a picture of 30 by 12 pixels.
    pub(super) fn entry(&mut self, name: &str, swatch: impl FnOnce(&mut String)) {
        self.0
            .push_str("<li><svg width=\"30\" height=\"12\" aria-hidden=\"true\">");
        swatch(self.0);
        let _ = write!(self.0, "</svg>{}</li>", escape(name));
    }

    /// Adds an entry for a filled rectangle.
    pub(super) fn fill(&mut self, name: &str, class: &str) {
        self.entry(name, |html| {
            let _ = write!(
                html,
                "<rect class=\"{class}\" x=\"1\" y=\"1\" width=\"28\" height=\"10\"/>"
            );
        });
    }

    /// Adds an entry for values that others published.
    pub(super) fn published(&mut self) {
        self.entry("published", |html| published(15.0, 6.0, 5.0, html));
    }
}

impl Drop for Legend<'_> {
    fn drop(&mut self) {
        self.0.push_str("</ul>");
    }
}
