//! Waterfall charts of page loads.

use std::fmt::Write;

use super::canvas::{self, BOTTOM, Frame, RIGHT, TICK_WIDTH, WIDTH, cut, text_width};
use super::looks::{LOOKS, Legend};
use super::scale::Scale;
use super::{Axis, Picture, Unit};
use crate::html::escape;
use crate::units;

const ROW_HEIGHT: f64 = 17.0;
const BAR_HEIGHT: f64 = 11.0;
/// Maximum space for names.
const WIDEST_NAME: f64 = 220.0;
/// Space for the time at the end of a bar.
const TIME: f64 = 64.0;
/// Maximum number of objects shown.
const MAX_ROWS: usize = 400;

/// Times of an object, in seconds since the start of the page load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetch {
    /// Its name.
    pub name: String,
    /// When the client discovered it.
    pub discovered_s: f64,
    /// When it was requested.
    pub requested_s: f64,
    /// When its connection was open, if that is known: until then, the request waits for the handshake.
    pub connected_s: Option<f64>,
    /// When its first byte arrived, if any.
    pub first_byte_s: Option<f64>,
    /// When its last byte arrived, if it did.
    pub finished_s: Option<f64>,
}

impl Fetch {
    fn times(&self) -> impl Iterator<Item = f64> {
        let always = [self.discovered_s, self.requested_s];
        let later = [self.connected_s, self.first_byte_s, self.finished_s];
        always.into_iter().chain(later.into_iter().flatten())
    }

    /// When its request could be sent.
    fn sent_s(&self) -> f64 {
        self.connected_s
            .map_or(self.requested_s, |at| at.max(self.requested_s))
    }

    fn waits_for_connection(&self) -> bool {
        self.sent_s() > self.requested_s
    }
}

/// A waterfall chart with a row per object: a line from discovery to request, an outline while the client
/// connects, hatched while it waits for the response, solid while it receives.
#[derive(Clone, Debug, PartialEq)]
pub struct Waterfall {
    title: String,
    note: String,
    fetches: Vec<Fetch>,
    events: Vec<(String, f64)>,
    until_s: f64,
}

impl Waterfall {
    /// An empty chart.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            note: String::new(),
            fetches: Vec::new(),
            events: Vec::new(),
            until_s: 0.0,
        }
    }

    /// Sets the note below the chart.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds an object, unless one of its times is not finite.
    #[must_use]
    pub fn fetch(mut self, fetch: Fetch) -> Self {
        if fetch.times().all(f64::is_finite) {
            self.fetches.push(fetch);
        }
        self
    }

    /// Marks an event of the page at `at_s` seconds, such as its load.
    #[must_use]
    pub fn event(mut self, name: impl Into<String>, at_s: f64) -> Self {
        if at_s.is_finite() {
            self.events.push((name.into(), at_s));
        }
        self
    }

    /// Extends the time axis to at least `end_s` seconds, so that pages can be compared.
    #[must_use]
    pub const fn until(mut self, end_s: f64) -> Self {
        if end_s.is_finite() {
            self.until_s = end_s;
        }
        self
    }

    fn shown(&self) -> &[Fetch] {
        &self.fetches[..self.fetches.len().min(MAX_ROWS)]
    }

    fn legend(&self, html: &mut String) {
        let mut legend = Legend::new(html);
        legend.entry("discovered, not yet requested", |html| {
            html.push_str("<path class=\"queued\" d=\"M1 6H29\"/>");
        });
        if self.shown().iter().any(Fetch::waits_for_connection) {
            legend.fill("connecting", "connecting");
        }
        legend.fill("waiting for the response", "waiting");
        legend.fill("receiving", "receiving");
        if self.shown().iter().any(|fetch| fetch.finished_s.is_none()) {
            legend.entry("not finished", |html| {
                html.push_str("<path class=\"failed\" d=\"M11 2l8 8m0-8l-8 8\"/>");
            });
        }
        for (at, (name, time)) in self.events.iter().enumerate() {
            legend.entry(&format!("{name}: {}", units::seconds(*time)), |html| {
                let _ = write!(
                    html,
                    "<path class=\"event m{}\" d=\"M15 0V12\"/>",
                    at % LOOKS
                );
            });
        }
    }

    fn picture(&self, html: &mut String) {
        let fetches = self.shown();
        let names = fetches.iter().map(|fetch| text_width(&fetch.name));
        let left = (names.fold(0.0, f64::max).min(WIDEST_NAME) + 16.0).round();
        let frame = Frame {
            left,
            top: 8.0,
            width: WIDTH - left - RIGHT,
            height: ROW_HEIGHT * fetches.len() as f64 + 6.0,
        };
        let times = fetches.iter().flat_map(Fetch::times);
        let times = times.chain(self.events.iter().map(|event| event.1));
        let end = times.fold(self.until_s, f64::max);
        // Space for the times behind the last bars.
        let end = end * frame.width / (frame.width - TIME);
        let axis = Axis::new("time", Unit::Seconds).spanning(0.0, end);
        let x = axis.scale([end].into_iter(), frame.width, TICK_WIDTH);
        canvas::open(WIDTH, frame.bottom() + BOTTOM, &self.title, html);
        frame.vertical_grid(&x, frame.bottom(), html);
        frame.horizontal_numbers(&x, frame.bottom(), WIDTH, html);
        frame.lines(html);
        for (at, (name, time)) in self.events.iter().enumerate() {
            let _ = write!(
                html,
                "<g><title>{}</title><path class=\"event m{}\" d=\"M{:.1} {}V{}\"/></g>",
                escape(name),
                at % LOOKS,
                frame.x(&x, *time),
                frame.top,
                frame.bottom()
            );
        }
        for (at, fetch) in fetches.iter().enumerate() {
            let middle = frame.top + 3.0 + (at as f64 + 0.5) * ROW_HEIGHT;
            row(fetch, middle, &frame, &x, html);
        }
        html.push_str("</svg>");
    }
}

fn row(fetch: &Fetch, middle: f64, frame: &Frame, x: &Scale, html: &mut String) {
    let at = |time| frame.x(x, time);
    let known = fetch.times().fold(0.0, f64::max);
    let sent = fetch.sent_s();
    let first_byte = fetch.first_byte_s.or(fetch.finished_s).unwrap_or(known);
    let finished = fetch.finished_s.unwrap_or(known);
    let end = fetch
        .finished_s
        .map_or_else(|| "not finished".to_owned(), units::seconds);
    let top = middle - BAR_HEIGHT / 2.0;
    let bar = |class: &str, from: f64, to: f64, html: &mut String| {
        if to > from {
            let _ = write!(
                html,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR_HEIGHT}\"/>",
                at(from),
                (at(to) - at(from)).max(0.6)
            );
        }
    };
    let connected = match fetch.waits_for_connection() {
        true => format!(", connected {}", units::seconds(sent)),
        false => String::new(),
    };
    let _ = write!(
        html,
        "<g><title>{}: discovered {}, requested {}{connected}, first byte {}, last byte {}</title>\
         <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
         <path class=\"queued\" d=\"M{:.1} {middle:.1}H{:.1}\"/>",
        escape(&fetch.name),
        units::seconds(fetch.discovered_s),
        units::seconds(fetch.requested_s),
        fetch
            .first_byte_s
            .map_or_else(|| "never".to_owned(), units::seconds),
        end,
        frame.left - 8.0,
        middle + 4.0,
        escape(&cut(&fetch.name, WIDEST_NAME)),
        at(fetch.discovered_s),
        at(fetch.requested_s),
    );
    bar("connecting", fetch.requested_s, sent, html);
    bar("waiting", sent, first_byte, html);
    bar("receiving", first_byte, finished, html);
    let after = at(finished) + 5.0;
    if fetch.finished_s.is_none() {
        let _ = write!(
            html,
            "<path class=\"failed\" d=\"M{after:.1} {:.1}l8 8m0-8l-8 8\"/>",
            middle - 4.0
        );
    } else {
        let _ = write!(
            html,
            "<text class=\"halo\" x=\"{after:.1}\" y=\"{:.1}\">{end}</text>",
            middle + 4.0
        );
    }
    html.push_str("</g>");
}

impl Picture for Waterfall {
    fn is_empty(&self) -> bool {
        self.fetches.is_empty()
    }

    fn to_html(&self) -> String {
        let hidden = self.fetches.len() - self.shown().len();
        let mut note = self.note.clone();
        if hidden > 0 {
            let _ = write!(note, " {hidden} further objects are not shown.");
        }
        canvas::scrolling(
            &self.title,
            note.trim(),
            |html| self.legend(html),
            |html| self.picture(html),
        )
    }
}

#[cfg(test)]
mod tests;
