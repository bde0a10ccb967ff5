//! Strips of events and spans below a plot.

use std::fmt::Write;

use super::canvas::Frame;
use super::looks::{LOOKS, Legend};
use super::scale::Scale;
use super::thin;
use crate::html::escape;

const HEIGHT: f64 = 16.0;
pub(super) const GAP: f64 = 7.0;
/// Distance from strip to strip.
pub(super) const PITCH: f64 = HEIGHT + GAP;
/// Ticks closer than this, in pixels, are drawn as one.
const TICK_GAP: f64 = 0.7;
/// Lines across a plot closer than this, in pixels, are drawn as one.
const RULE_GAP: f64 = 3.0;

/// A strip below the plot.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Strip {
    /// Events.
    Events { name: String, times: Vec<f64> },
    /// Spans: start, end and index of the name of each.
    Spans {
        name: String,
        names: Vec<String>,
        spans: Vec<(f64, f64, usize)>,
    },
}

impl Strip {
    /// A tick at each of `times`, if there are any.
    pub(super) fn events(name: String, mut times: Vec<f64>) -> Option<Self> {
        times.retain(|time| time.is_finite());
        (!times.is_empty()).then_some(Self::Events { name, times })
    }

    /// Spans of states, each until the next one is entered, if there are any.
    pub(super) fn states(name: String, entered: &[(f64, String)], end: f64) -> Option<Self> {
        let mut names: Vec<String> = Vec::new();
        let ends = entered.iter().skip(1).map(|&(from, _)| from).chain([end]);
        let spans: Vec<_> = entered
            .iter()
            .zip(ends)
            .filter(|((from, _), to)| from.is_finite() && to.is_finite())
            .map(|((from, state), to)| {
                let at = names.iter().position(|known| known == state);
                let at = at.unwrap_or_else(|| {
                    names.push(state.clone());
                    names.len() - 1
                });
                (*from, to, at)
            })
            .collect();
        (!spans.is_empty()).then_some(Self::Spans { name, names, spans })
    }
}

/// A snake case name as words.
fn words_of(name: &str) -> String {
    name.replace('_', " ")
}

/// Adds the fills of a strip to the legend.
pub(super) fn legend(strip: &Strip, legend: &mut Legend<'_>) {
    if let Strip::Spans { names, .. } = strip {
        for (at, name) in names.iter().enumerate() {
            legend.fill(&words_of(name), &format!("span p{}", at % LOOKS));
        }
    }
}

/// Draws lines across a plot at events of kind number `kind`.
pub(super) fn event_lines(times: &[f64], kind: usize, frame: &Frame, x: &Scale, html: &mut String) {
    let _ = write!(html, "<path class=\"rule m{}\" d=\"", kind % LOOKS);
    for at in thin::positions(on_scale(times, frame, x), RULE_GAP) {
        let _ = write!(html, "M{at:.1} {}V{}", frame.top, frame.bottom());
    }
    html.push_str("\"/>");
}

fn on_scale<'t>(
    times: &'t [f64],
    frame: &'t Frame,
    x: &'t Scale,
) -> impl Iterator<Item = f64> + 't {
    let shown = times.iter().filter(|&&time| time >= x.from && time <= x.to);
    shown.map(|&time| frame.x(x, time))
}

/// Draws strips below the frame.
pub(super) fn draw(strips: &[Strip], frame: &Frame, x: &Scale, html: &mut String) {
    let mut events = 0;
    let mut top = frame.bottom() + GAP;
    for strip in strips {
        let bottom = top + HEIGHT;
        let (Strip::Events { name, .. } | Strip::Spans { name, .. }) = strip;
        let _ = write!(
            html,
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            frame.left - 8.0,
            top + 12.0,
            escape(name)
        );
        match strip {
            Strip::Events { times, name } => {
                let _ = write!(
                    html,
                    "<g><title>{}: {}</title><path class=\"base\" d=\"M{} {bottom}h{}\"/>\
                     <path class=\"moment m{}\" d=\"",
                    escape(name),
                    times.len(),
                    frame.left,
                    frame.width,
                    events % LOOKS,
                );
                for at in thin::positions(on_scale(times, frame, x), TICK_GAP) {
                    let _ = write!(html, "M{at:.1} {top}V{bottom}");
                }
                html.push_str("\"/></g>");
                events += 1;
            }
            Strip::Spans { names, spans, .. } => {
                for &(from, to, name) in spans {
                    let (start, end) = (frame.x(x, from), frame.x(x, to));
                    let width = (end - start).max(0.4);
                    let words = words_of(&names[name]);
                    let _ = write!(
                        html,
                        "<g><title>{words}, {from:.3} s to {to:.3} s</title>\
                         <rect class=\"span p{}\" x=\"{start:.1}\" y=\"{top}\" width=\"{width:.1}\" \
                         height=\"{HEIGHT}\"/></g>",
                        name % LOOKS,
                        words = escape(&words),
                    );
                }
            }
        }
        top += PITCH;
    }
}
