//! Layout of charts with groups of series.

use std::fmt::Write;
use std::ops::Range;

use super::canvas::{self, Frame, PLOT_HEIGHT, PLOT_WIDTH, RIGHT};
use super::cells::{Cells, Place};
use super::labels::Labels;
use super::looks;
use super::scale::Scale;
use crate::html::escape;

/// Maximum width of a group; a chart with few groups is narrow.
const WIDEST_GROUP: f64 = 280.0;
/// Minimum width of one series in a group; groups that do not fit into a row are continued in another
/// one.
const NARROWEST_LANE: f64 = 10.0;
const WIDEST_LANE: f64 = 74.0;
/// Share of a group's width that its series take.
const FILLED: f64 = 0.84;
/// Maximum width of a box or bar.
const WIDEST_BODY: f64 = 44.0;

/// The layout of one row of groups.
#[derive(Debug)]
pub(super) struct Grouped<'n> {
    pub(super) frame: Frame,
    /// The groups of this row.
    groups: Range<usize>,
    is_last: bool,
    labels: Labels<'n>,
    /// Width of a group.
    slot: f64,
    /// Width of a series in it.
    pub(super) lane: f64,
    lanes: usize,
    /// Width of a box or bar.
    pub(super) body: f64,
    /// Offset from the middle of a lane to the middle of its body, and to its published value.
    body_shift: f64,
    published_shift: f64,
}

impl<'n> Grouped<'n> {
    /// The rows for all groups.
    pub(super) fn rows<T: Default>(
        cells: &'n Cells<T>,
        has_published: bool,
    ) -> impl Iterator<Item = Self> {
        let lanes = cells.series.len().max(1);
        let fitting = (PLOT_WIDTH * FILLED / (lanes as f64 * NARROWEST_LANE)) as usize;
        let rows = cells.groups.len().div_ceil(fitting.max(1)).max(1);
        let groups_per_row = cells.groups.len().div_ceil(rows).max(1);
        (0..rows).map(move |row| {
            let from = row * groups_per_row;
            let to = cells.groups.len().min(from + groups_per_row);
            let names = &cells.groups[from..to];
            Self {
                groups: from..to,
                is_last: row + 1 == rows,
                ..Self::row(names, lanes, groups_per_row, has_published)
            }
        })
    }

    fn row(names: &'n [String], lanes: usize, slots: usize, has_published: bool) -> Self {
        let slot = (PLOT_WIDTH / slots as f64).min(WIDEST_GROUP);
        let lane = (slot * FILLED / lanes as f64).min(WIDEST_LANE);
        let body = (lane * if has_published { 0.56 } else { 0.74 }).min(WIDEST_BODY);
        let space = lane - body;
        let shift = if has_published { lane * 0.16 } else { 0.0 };
        Self {
            frame: Frame {
                width: (slot * names.len().max(1) as f64).round(),
                ..Frame::with_height(PLOT_HEIGHT)
            },
            groups: 0..names.len(),
            is_last: true,
            labels: Labels::new(names, slot),
            slot,
            lane,
            lanes,
            body,
            body_shift: -shift,
            published_shift: body / 2.0 - shift + (space * 0.4).min(9.0),
        }
    }

    /// Whether a group is in this row.
    pub(super) fn holds(&self, group: usize) -> bool {
        self.groups.contains(&group)
    }

    /// The middle of a lane.
    fn middle(&self, Place { group, series }: Place) -> f64 {
        let lanes_before = series as f64 + 0.5 - self.lanes as f64 / 2.0;
        let groups_before = group.saturating_sub(self.groups.start) as f64;
        self.frame.left + (groups_before + 0.5) * self.slot + lanes_before * self.lane
    }

    /// The middle of the body of a series in a group.
    pub(super) fn body(&self, place: Place) -> f64 {
        self.middle(place) + self.body_shift
    }

    /// Marks a published value beside the body it belongs to.
    pub(super) fn published(&self, place: Place, y: f64, words: &str, html: &mut String) {
        let x = self.middle(place) + self.published_shift;
        let _ = write!(html, "<g><title>{}</title>", escape(words));
        looks::published(x, y, (self.lane * 0.22).clamp(2.5, 5.0), html);
        html.push_str("</g>");
    }

    /// Opens the SVG element with axes and lines between groups.
    pub(super) fn open(&self, title: &str, groups: &str, y: &Scale, html: &mut String) {
        let frame = &self.frame;
        let names = self.labels.height();
        let has_title = self.is_last && !groups.is_empty();
        let height = frame.bottom() + names + if has_title { 30.0 } else { 14.0 };
        canvas::open(frame.right() + RIGHT, height, title, html);
        frame.vertical_axis(y, html);
        let mut boundary = frame.left + self.slot;
        while boundary < frame.right() - 1.0 {
            let _ = write!(
                html,
                "<path class=\"grid\" d=\"M{boundary:.1} {}V{}\"/>",
                frame.top,
                frame.bottom() + 5.0
            );
            boundary += self.slot;
        }
        frame.lines(html);
        self.labels.draw(frame, html);
        if has_title {
            frame.horizontal_title(groups, frame.bottom() + names + 22.0, html);
        }
    }
}
