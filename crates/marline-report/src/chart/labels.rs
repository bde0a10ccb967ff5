//! Names of groups below an axis.

use std::fmt::Write;

use super::canvas::{Frame, LETTER, cut, text_width};
use crate::html::escape;

const LINE_HEIGHT: f64 = 14.0;
/// Names that need more lines are slanted.
const MAX_LINES: usize = 3;
/// Maximum length of a slanted name; longer ones would exceed the chart on the left.
const SLANTED: f64 = 18.0 * LETTER;
/// Sine of the slant.
const SLOPE: f64 = 0.574;

/// Names of groups, broken into lines or slanted so that they do not overlap.
#[derive(Debug)]
pub(super) struct Labels<'n> {
    names: &'n [String],
    lines: Option<Vec<Vec<String>>>,
    slot: f64,
}

impl<'n> Labels<'n> {
    /// Lays out names for groups that are `slot` pixels wide.
    pub(super) fn new(names: &'n [String], slot: f64) -> Self {
        let lines = names.iter().map(|name| wrap(name, slot - 6.0)).collect();
        Self { names, lines, slot }
    }

    /// Height of the names.
    pub(super) fn height(&self) -> f64 {
        match &self.lines {
            Some(lines) => LINE_HEIGHT * lines.iter().map(Vec::len).max().unwrap_or(1) as f64,
            None => {
                let widths = self.names.iter().map(|name| text_width(name));
                let widest = widths.fold(0.0, f64::max).min(SLANTED);
                SLOPE * widest + 10.0
            }
        }
    }

    /// Draws them below the frame.
    pub(super) fn draw(&self, frame: &Frame, html: &mut String) {
        let middles = (0..).map(|n: u32| frame.left + (f64::from(n) + 0.5) * self.slot);
        for (at, (middle, name)) in middles.zip(self.names).enumerate() {
            match self.lines.as_ref().map(|lines| &lines[at]) {
                Some(lines) => {
                    for (n, line) in (1..).zip(lines) {
                        let _ = write!(
                            html,
                            "<text class=\"mid\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
                            frame.bottom() + 3.0 + LINE_HEIGHT * f64::from(n),
                            escape(line)
                        );
                    }
                }
                None => {
                    let (x, y) = (middle + 4.0, frame.bottom() + 14.0);
                    let _ = write!(
                        html,
                        "<text class=\"end\" transform=\"translate({x:.1} {y:.1})rotate(-35)\">\
                         <title>{}</title>{}</text>",
                        escape(name),
                        escape(&cut(name, SLANTED))
                    );
                }
            }
        }
    }
}

/// Breaks a name at spaces into lines of up to `width` pixels, if possible.
fn wrap(name: &str, width: f64) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line) + LETTER + text_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let fits = lines.len() <= MAX_LINES && lines.iter().all(|line| text_width(line) <= width);
    fits.then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_broken_at_spaces_or_slanted() {
        let names = ["good radio".to_owned(), "bad".to_owned(), String::new()];
        let labels = Labels::new(&names, 50.0);
        let lines = labels.lines.as_ref().expect("they fit");
        assert_eq!(lines[0], ["good", "radio"]);
        assert_eq!(labels.height(), 2.0 * LINE_HEIGHT);
        let labels = Labels::new(&names, 30.0);
        assert!(labels.lines.is_none());
        let mut html = String::new();
        labels.draw(&Frame::with_height(100.0), &mut html);
        assert_eq!(html.matches("rotate(-35)").count(), 3);
    }
}
