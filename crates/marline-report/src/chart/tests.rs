//! Charts.

use super::*;
use crate::html::nested::{assert_sound, shown};
use crate::html::{PATTERNS, STYLE};

fn time_chart() -> Chart {
    Chart::new(
        "a <title>",
        Axis::new("time", Unit::Seconds),
        Axis::new("window", Unit::Bytes),
    )
}

#[test]
fn a_chart_has_titles_units_and_a_legend() {
    let states = [(0.0, "slow_start".to_owned()), (1.0, "recovery".to_owned())];
    let html = time_chart()
        .series("window", Style::Steps, vec![(0.0, 1e4), (2.0, 5e4)])
        .series("\"in\" flight", Style::Area, vec![(0.0, 1e4), (2.0, 5e4)])
        .states("state", &states, 2.0)
        .events("lost", vec![0.5, 1.5, 9.0])
        .to_html();
    for part in [
        "<figcaption>a &lt;title&gt;</figcaption>",
        "window (kB)",
        "time (s)",
        "&quot;in&quot; flight",
        "slow start, 0.000 s to 1.000 s",
        "<title>lost: 3</title>",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
}

#[test]
fn non_finite_values_are_not_shown() {
    let bad = vec![(f64::NAN, 1.0), (0.0, f64::INFINITY)];
    let chart = time_chart()
        .series("bad", Style::Line, bad)
        .events("bad", vec![f64::NAN])
        .states("bad", &[(f64::NAN, "x".into())], 1.0);
    assert!(chart.is_empty());
    let html = chart
        .series("one point", Style::Line, vec![(0.0, 0.0)])
        .to_html();
    assert_sound(&html);
}

#[test]
fn an_ecdf_rises_to_one() {
    let chart = time_chart().ecdf("rtt", vec![3.0, f64::NAN, 1.0, 2.0, 2.0]);
    assert_eq!(
        chart.plots[0].points,
        [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0)]
    );
    assert!(time_chart().ecdf("none", Vec::new()).is_empty());
}

#[test]
fn long_series_are_thinned() {
    let points = (0..200_000)
        .map(|n| (f64::from(n) * 1e-4, f64::from(n * 7919 % 1000)))
        .collect();
    let html = time_chart().series("long", Style::Line, points).to_html();
    let html = shown(&html);
    assert!(html.len() < 80_000, "{} bytes", html.len());
}

#[test]
fn ecdfs_are_marked_at_fixed_shares() {
    let chart = (0..3_u32).fold(time_chart(), |chart, series| {
        let samples = (0..500).map(|n| f64::from(n * 7 % 500 + series)).collect();
        chart.ecdf(format!("series {series}"), samples)
    });
    for plot in &chart.plots {
        let shares: Vec<f64> = plot.marks.iter().map(|mark| mark.1).collect();
        assert_eq!(shares, MARKED_SHARES);
    }
    assert_eq!(chart.plots[1].marks[2].0, 250.0);
    let html = chart.to_html();
    assert_sound(&html);
    // Five on each line, and one in the legend.
    assert_eq!(html.matches("class=\"mark s1\"").count(), 6);
}

#[test]
fn scatter_plots_show_marks_and_fits_of_their_series() {
    let html = time_chart()
        .scatter("cubic", vec![(3.0, 1.0), (1.0, 2.0), (2.0, f64::NAN)])
        .scatter("bbr", vec![(1.0, 1.0)])
        .fit("bbr", "bbr, r < 0.1", -1e9, 2.0)
        .fit("nobody", "nobody's", 1.0, 1.0)
        .fit("cubic", "bad", f64::NAN, 1.0)
        .note("a & b")
        .to_html();
    assert_sound(&html);
    assert_eq!(html.matches("class=\"fit s1\"").count(), 2);
    assert_eq!(html.matches("class=\"fit").count(), 2);
    assert!(html.contains("bbr, r &lt; 0.1") && !html.contains("nobody"));
    assert!(html.contains("<p class=\"note\">a &amp; b</p>"));
}

#[test]
fn logarithmic_charts_accept_values_at_or_below_zero() {
    let axis = || Axis::new("x", Unit::Bytes).logarithmic();
    let points = vec![(0.0, -1.0), (10.0, 0.0), (1e6, 1e3)];
    for style in [Style::Line, Style::Steps, Style::Area, Style::Marks] {
        let html = Chart::new("log", axis(), axis())
            .series("s", style, points.clone())
            .fit("s", "fit", 1.0, -5.0)
            .to_html();
        assert_sound(&html);
        assert!(html.contains(">10 k</text>"));
    }
}

#[test]
fn every_look_is_in_the_style_sheet() {
    for look in 0..looks::LOOKS {
        for class in ["s", "a", "f", "p"] {
            let rule = format!(".{class}{look} {{");
            assert!(STYLE.contains(&rule), "{rule}");
        }
        let dashes = format!(".line.s{look} {{");
        assert!(look == 0 || STYLE.contains(&dashes), "{dashes}");
        let fill = format!("url(#f{look})");
        let pattern = format!("id=\"f{look}\"");
        assert!(
            !STYLE.contains(&fill) || PATTERNS.contains(&pattern),
            "{fill}"
        );
    }
}
