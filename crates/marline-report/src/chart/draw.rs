//! The SVG of a chart.

use std::fmt::Write;

use super::axis::Scale;
use super::{Chart, Plot, Strip, Style, thin};
use crate::html::escape;

/// Width of the picture, in its own pixels; the page scales it.
const WIDTH: f64 = 920.0;
/// Room for the numbers of the vertical axis and the names of strips.
const LEFT: f64 = 66.0;
const RIGHT: f64 = 18.0;
/// Room for the title of the vertical axis.
const TOP: f64 = 26.0;
const PLOT_HEIGHT: f64 = 230.0;
const STRIP_HEIGHT: f64 = 16.0;
const STRIP_GAP: f64 = 7.0;
/// Room for the numbers and the title of the horizontal axis.
const BOTTOM: f64 = 42.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;

/// Colors, dashes and patterns that the style sheet knows.
const LOOKS: usize = 6;
/// Marks are drawn on lines of up to so many points.
const MARKED: usize = 40;
/// Width of a letter, roughly.
const LETTER: f64 = 6.2;

pub(super) fn figure(chart: &Chart) -> String {
    let mut html = String::from("<figure>");
    let _ = write!(html, "<figcaption>{}</figcaption>", escape(&chart.title));
    key(chart, &mut html);
    html.push_str("<div class=\"scroll\">");
    picture(chart, &mut html);
    html.push_str("</div></figure>\n");
    html
}

/// The list of what is drawn how.
fn key(chart: &Chart, html: &mut String) {
    html.push_str("<ul class=\"key\">");
    for (at, plot) in chart.plots.iter().enumerate() {
        let look = at % LOOKS;
        html.push_str("<li><svg width=\"30\" height=\"12\" aria-hidden=\"true\">");
        let _ = match plot.style {
            Style::Points => write!(
                html,
                "<path class=\"dots s{look}\" d=\"M4 7h0M12 4h0M18 9h0M26 5h0\"/>"
            ),
            Style::Area => write!(html, "<path class=\"area a{look}\" d=\"M1 1H29V11H1z\"/>"),
            Style::Line | Style::Steps => {
                write!(html, "<path class=\"line s{look}\" d=\"M1 6H29\"/>")
            }
        };
        if plot.is_marked() {
            mark(look, 15.0, 6.0, html);
        }
        let _ = write!(html, "</svg>{}</li>", escape(&plot.name));
    }
    for strip in &chart.strips {
        if let Strip::Spans { names, .. } = strip {
            for (at, name) in names.iter().enumerate() {
                let _ = write!(
                    html,
                    "<li><svg width=\"30\" height=\"12\" aria-hidden=\"true\">\
                     <rect class=\"span p{}\" x=\"1\" y=\"1\" width=\"28\" height=\"10\"/></svg>{}</li>",
                    at % LOOKS,
                    escape(&spoken(name)),
                );
            }
        }
    }
    html.push_str("</ul>");
}

/// A name in snake case as words.
fn spoken(name: &str) -> String {
    name.replace('_', " ")
}

fn picture(chart: &Chart, html: &mut String) {
    let strips = chart.strips.len() as f64 * (STRIP_HEIGHT + STRIP_GAP);
    let height = TOP + PLOT_HEIGHT + strips + BOTTOM;
    let xs = chart.plots.iter().flat_map(|plot| &plot.points);
    let x = chart.x.scale(xs.map(|p| p.0), PLOT_WIDTH, 90.0);
    let ys = chart.plots.iter().flat_map(|plot| &plot.points);
    let y = chart.y.scale(ys.map(|p| p.1), PLOT_HEIGHT, 46.0);
    let _ = write!(
        html,
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(&chart.title)
    );
    let bottom = TOP + PLOT_HEIGHT + strips;
    frame(&x, &y, bottom, html);
    // Lines lie on top of clouds and areas.
    for on_top in [false, true] {
        for (at, plot) in chart.plots.iter().enumerate() {
            if plot.is_line() == on_top {
                draw_plot(plot, at % LOOKS, &x, &y, html);
            }
        }
    }
    let mut moments = 0;
    for (at, strip) in chart.strips.iter().enumerate() {
        let top = TOP + PLOT_HEIGHT + STRIP_GAP + at as f64 * (STRIP_HEIGHT + STRIP_GAP);
        draw_strip(strip, moments % LOOKS, top, &x, html);
        moments += usize::from(matches!(strip, Strip::Moments { .. }));
    }
    html.push_str("</svg>");
}

/// Grid, numbers and titles of both axes. Numbers of the horizontal one stand at `bottom`.
fn frame(x: &Scale, y: &Scale, bottom: f64, html: &mut String) {
    let (right, zero) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
    for (tick, text) in &y.ticks {
        let at = zero - y.at(*tick);
        let _ = write!(
            html,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\
             <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            escape(text)
        );
    }
    let last = x.ticks.len().saturating_sub(1);
    for (n, (tick, text)) in x.ticks.iter().enumerate() {
        let at = LEFT + x.at(*tick);
        let at_edge = n == last && WIDTH - at < LETTER * text.len() as f64 / 2.0;
        let _ = write!(
            html,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>\
             <text class=\"{}\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
            if at_edge { "end" } else { "mid" },
            bottom + 17.0,
            escape(text)
        );
    }
    let _ = write!(
        html,
        "<path class=\"axis\" d=\"M{LEFT} {TOP}V{zero}H{right}\"/>\
         <text class=\"title\" x=\"4\" y=\"13\">{}</text>\
         <text class=\"title end\" x=\"{right}\" y=\"{:.1}\">{}</text>",
        escape(&y.title),
        bottom + 35.0,
        escape(&x.title)
    );
}

impl Plot {
    const fn is_line(&self) -> bool {
        matches!(self.style, Style::Line | Style::Steps)
    }

    const fn is_marked(&self) -> bool {
        self.is_line() && self.points.len() <= MARKED
    }
}

fn draw_plot(plot: &Plot, look: usize, x: &Scale, y: &Scale, html: &mut String) {
    let zero = TOP + PLOT_HEIGHT;
    let pixels = plot
        .points
        .iter()
        .map(|&(px, py)| (LEFT + x.at(px), zero - y.at(py)));
    let points = thin::columns(pixels);
    let _ = write!(html, "<g><title>{}</title>", escape(&plot.name));
    match plot.style {
        // One path of round dots: a circle each would weigh ten times as much.
        Style::Points => {
            let _ = write!(html, "<path class=\"dots s{look}\" d=\"");
            for (px, py) in &points {
                let _ = write!(html, "M{px:.1} {py:.1}h0");
            }
        }
        Style::Area => {
            let (first, last) = (points.first(), points.last());
            if let (Some(first), Some(last)) = (first, last) {
                let _ = write!(
                    html,
                    "<path class=\"area a{look}\" d=\"M{:.1} {zero}",
                    first.0
                );
                steps(&points, html);
                let _ = write!(html, "H{:.1}V{zero}z", last.0);
            }
        }
        Style::Steps => {
            let _ = write!(html, "<path class=\"line s{look}\" d=\"");
            if let Some((px, py)) = points.first() {
                let _ = write!(html, "M{px:.1} {py:.1}");
            }
            steps(&points, html);
        }
        Style::Line => {
            let _ = write!(html, "<path class=\"line s{look}\" d=\"");
            for (at, (px, py)) in points.iter().enumerate() {
                let verb = if at == 0 { 'M' } else { 'L' };
                let _ = write!(html, "{verb}{px:.1} {py:.1}");
            }
        }
    }
    html.push_str("\"/>");
    if plot.is_marked() {
        for (px, py) in points {
            mark(look, px, py, html);
        }
    }
    html.push_str("</g>");
}

/// Goes from level to level at right angles.
fn steps(points: &[(f64, f64)], html: &mut String) {
    for (px, py) in points {
        let _ = write!(html, "H{px:.1}V{py:.1}");
    }
}

/// A small figure around a point, another one for each look.
fn mark(look: usize, x: f64, y: f64, html: &mut String) {
    let outline = match look % LOOKS {
        0 => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
        1 => "m-2.7-2.7h5.4v5.4h-5.4z",
        2 => "m0-3.4l3.2 5.8h-6.4z",
        3 => "m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z",
        4 => "m-3-3l6 6m0-6l-6 6",
        _ => "m-3.5 0h7m-3.5-3.5v7",
    };
    let _ = write!(
        html,
        "<path class=\"mark s{look}\" d=\"M{x:.1} {y:.1}{outline}\"/>"
    );
}

fn draw_strip(strip: &Strip, look: usize, top: f64, x: &Scale, html: &mut String) {
    let (name, bottom) = match strip {
        Strip::Moments { name, .. } | Strip::Spans { name, .. } => (name, top + STRIP_HEIGHT),
    };
    let _ = write!(
        html,
        "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        LEFT - 8.0,
        top + 12.0,
        escape(name)
    );
    match strip {
        Strip::Moments { times, name } => {
            let pixels = times
                .iter()
                .filter(|&&time| time >= x.from && time <= x.to)
                .map(|&time| LEFT + x.at(time));
            let _ = write!(
                html,
                "<g><title>{}: {}</title><path class=\"base\" d=\"M{LEFT} {bottom}h{PLOT_WIDTH}\"/>\
                 <path class=\"moment m{look}\" d=\"",
                escape(name),
                times.len(),
            );
            for at in thin::moments(pixels, 0.7) {
                let _ = write!(html, "M{at:.1} {top}V{bottom}");
            }
            html.push_str("\"/></g>");
        }
        Strip::Spans { names, spans, .. } => {
            for &(from, to, name) in spans {
                let (start, end) = (LEFT + x.at(from), LEFT + x.at(to));
                let width = (end - start).max(0.4);
                let words = spoken(&names[name]);
                let _ = write!(
                    html,
                    "<g><title>{words}, {from:.3} s to {to:.3} s</title>\
                     <rect class=\"span p{}\" x=\"{start:.1}\" y=\"{top}\" width=\"{width:.1}\" \
                     height=\"{STRIP_HEIGHT}\"/></g>",
                    name % LOOKS,
                    words = escape(&words),
                );
            }
        }
    }
}
