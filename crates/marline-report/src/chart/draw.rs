//! Drawing of charts as SVG.

use std::fmt::Write;

use super::canvas::{self, BOTTOM, Frame, PLOT_HEIGHT, TICK_HEIGHT, TICK_WIDTH, WIDTH};
use super::looks::{self, LOOKS, Legend};
use super::scale::Scale;
use super::{Chart, Fit, Plot, Style, strip, thin};
use crate::html::escape;

/// Lines of up to this many points have marks.
const MARKED: usize = 40;
/// Marks of a scatter plot closer than this, in pixels, are drawn as one.
const CLOUD_GAP: f64 = 2.0;

pub(super) fn figure(chart: &Chart) -> String {
    let mut html = String::new();
    canvas::figure(&chart.title, &chart.note, &mut html, |html| {
        legend(chart, html);
        html.push_str("<div class=\"scroll\">");
        let view = View {
            x: &x_scale(chart),
            height: PLOT_HEIGHT,
            numbers: true,
            rules: &[],
        };
        picture(chart, &view, html);
        html.push_str("</div>");
    });
    html
}

/// The view of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'v> {
    pub(super) x: &'v Scale,
    /// Height of the plot, in pixels.
    pub(super) height: f64,
    /// Whether the horizontal axis has numbers.
    pub(super) numbers: bool,
    /// Vertical lines, by kind.
    pub(super) rules: &'v [&'v [f64]],
}

fn x_scale(chart: &Chart) -> Scale {
    let points = chart.plots.iter().flat_map(|plot| &plot.points);
    let width = canvas::PLOT_WIDTH;
    chart.x.scale(points.map(|p| p.0), width, TICK_WIDTH)
}

/// Writes the legend.
pub(super) fn legend(chart: &Chart, html: &mut String) {
    let mut legend = Legend::new(html);
    for (at, plot) in chart.plots.iter().enumerate() {
        let look = at % LOOKS;
        legend.entry(&plot.name, |html| {
            let _ = match plot.style {
                Style::Points => write!(
                    html,
                    "<path class=\"dots s{look}\" d=\"M4 7h0M12 4h0M18 9h0M26 5h0\"/>"
                ),
                Style::Area => write!(html, "<path class=\"area a{look}\" d=\"M1 1H29V11H1z\"/>"),
                Style::Line | Style::Steps => {
                    write!(html, "<path class=\"line s{look}\" d=\"M1 6H29\"/>")
                }
                Style::Marks => Ok(()),
            };
            if plot.style == Style::Marks || !plot.marked().is_empty() {
                looks::mark(look, 15.0, 6.0, html);
            }
        });
    }
    for fit in &chart.fits {
        if let Some(look) = fit.look(chart) {
            legend.entry(&fit.name, |html| {
                let _ = write!(html, "<path class=\"fit s{look}\" d=\"M1 6H29\"/>");
                looks::mark(look, 15.0, 6.0, html);
            });
        }
    }
    for strip in &chart.strips {
        strip::legend(strip, &mut legend);
    }
}

pub(super) fn picture(chart: &Chart, view: &View<'_>, html: &mut String) {
    let frame = Frame::with_height(view.height);
    let bottom = frame.bottom() + chart.strips.len() as f64 * strip::PITCH;
    let height = bottom + if view.numbers { BOTTOM } else { strip::GAP };
    let ys = chart.plots.iter().flat_map(|plot| &plot.points);
    let y = chart.y.scale(ys.map(|p| p.1), frame.height, TICK_HEIGHT);
    canvas::open(WIDTH, height, &chart.title, html);
    frame.vertical_axis(&y, html);
    frame.vertical_grid(view.x, bottom, html);
    if view.numbers {
        frame.horizontal_numbers(view.x, bottom, WIDTH, html);
    }
    frame.lines(html);
    for (kind, times) in view.rules.iter().enumerate() {
        strip::event_lines(times, kind, &frame, view.x, html);
    }
    // Lines are drawn over scatter plots and areas.
    for on_top in [false, true] {
        for (at, plot) in chart.plots.iter().enumerate() {
            if plot.is_line() == on_top {
                draw_plot(plot, at % LOOKS, &frame, view.x, &y, html);
            }
        }
    }
    for fit in &chart.fits {
        if let Some(look) = fit.look(chart) {
            draw_fit(fit, look, &frame, view.x, &y, html);
        }
    }
    strip::draw(&chart.strips, &frame, view.x, html);
    html.push_str("</svg>");
}

impl Plot {
    const fn is_line(&self) -> bool {
        matches!(self.style, Style::Line | Style::Steps)
    }

    /// The points with marks.
    fn marked(&self) -> &[(f64, f64)] {
        if !self.marks.is_empty() {
            &self.marks
        } else if self.is_line() && self.points.len() <= MARKED {
            &self.points
        } else {
            &[]
        }
    }
}

impl Fit {
    /// The style of its series, if that exists.
    fn look(&self, chart: &Chart) -> Option<usize> {
        let series = chart.plots.iter().position(|plot| plot.name == self.series);
        series.map(|at| at % LOOKS)
    }
}

fn draw_plot(plot: &Plot, look: usize, frame: &Frame, x: &Scale, y: &Scale, html: &mut String) {
    let zero = frame.bottom();
    let pixel = |&(px, py): &(f64, f64)| (frame.x(x, px), frame.y(y, py));
    let pixels = plot.points.iter().map(pixel);
    let points = if plot.style == Style::Marks {
        thin::cloud(pixels, CLOUD_GAP)
    } else {
        thin::columns(pixels)
    };
    let _ = write!(html, "<g><title>{}</title>", escape(&plot.name));
    match plot.style {
        // One path of round dots, a tenth of the size of one circle element each.
        Style::Points => {
            let _ = write!(html, "<path class=\"dots s{look}\" d=\"");
            for (px, py) in &points {
                let _ = write!(html, "M{px:.1} {py:.1}h0");
            }
        }
        Style::Marks => {
            let _ = write!(html, "<path class=\"mark s{look}\" d=\"");
            for &(px, py) in &points {
                looks::outline(look, px, py, html);
            }
        }
        Style::Area => {
            let (first, last) = (points.first(), points.last());
            let _ = write!(html, "<path class=\"area a{look}\" d=\"");
            if let (Some(first), Some(last)) = (first, last) {
                let _ = write!(html, "M{:.1} {zero}", first.0);
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
    for (px, py) in plot.marked().iter().map(pixel) {
        looks::mark(look, px, py, html);
    }
    html.push_str("</g>");
}

/// Draws steps.
fn steps(points: &[(f64, f64)], html: &mut String) {
    for (px, py) in points {
        let _ = write!(html, "H{px:.1}V{py:.1}");
    }
}

/// Draws a straight line across the frame, clipped to it.
fn draw_fit(fit: &Fit, look: usize, frame: &Frame, x: &Scale, y: &Scale, html: &mut String) {
    // On logarithmic axes the line is curved.
    let pieces = if x.logarithmic || y.logarithmic {
        64
    } else {
        1
    };
    // A nested SVG element clips to its rectangle.
    let _ = write!(
        html,
        "<svg x=\"{l}\" y=\"{t}\" width=\"{w}\" height=\"{h}\" viewBox=\"{l} {t} {w} {h}\">\
         <title>{}</title><path class=\"fit s{look}\" d=\"",
        escape(&fit.name),
        l = frame.left,
        t = frame.top,
        w = frame.width,
        h = frame.height,
    );
    for piece in 0..=pieces {
        let share = f64::from(piece) / f64::from(pieces);
        let value = if x.logarithmic {
            x.from * (x.to / x.from).powf(share)
        } else {
            x.from + (x.to - x.from) * share
        };
        let height = y.unclamped(fit.slope.mul_add(value, fit.intercept));
        // Limits the coordinates of points far outside.
        let height = height.clamp(-100.0 * frame.height, 100.0 * frame.height);
        let verb = if piece == 0 { 'M' } else { 'L' };
        let (px, py) = (frame.left + share * frame.width, frame.bottom() - height);
        let _ = write!(html, "{verb}{px:.1} {py:.1}");
    }
    html.push_str("\"/></svg>");
}
