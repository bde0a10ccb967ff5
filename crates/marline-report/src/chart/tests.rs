//! What charts show, and that they stay well formed.

use super::*;

fn time_chart() -> Chart {
    Chart::new(
        "a <title>",
        Axis::new("time", Unit::Seconds),
        Axis::new("window", Unit::Bytes),
    )
}

#[test]
fn a_chart_has_titles_units_and_a_key() {
    let states = [(0.0, "slow_start".to_owned()), (1.0, "recovery".to_owned())];
    let html = time_chart()
        .series("window", Style::Steps, vec![(0.0, 1e4), (2.0, 5e4)])
        .series("\"in\" flight", Style::Area, vec![(0.0, 1e4), (2.0, 5e4)])
        .states("state", &states, 2.0)
        .moments("lost", vec![0.5, 1.5, 9.0])
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
fn values_that_are_none_do_not_show() {
    let bad = vec![(f64::NAN, 1.0), (0.0, f64::INFINITY)];
    let chart = time_chart()
        .series("bad", Style::Line, bad)
        .moments("bad", vec![f64::NAN])
        .states("bad", &[(f64::NAN, "x".into())], 1.0);
    assert!(chart.is_empty());
    let html = chart
        .series("one point", Style::Line, vec![(0.0, 0.0)])
        .to_html();
    assert!(!html.contains("NaN") && !html.contains("inf"));
}

#[test]
fn an_ecdf_climbs_to_one() {
    let chart = time_chart().ecdf("rtt", vec![3.0, f64::NAN, 1.0, 2.0, 2.0]);
    assert_eq!(
        chart.plots[0].points,
        [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0)]
    );
    assert!(time_chart().ecdf("none", Vec::new()).is_empty());
}

#[test]
fn long_series_make_short_pictures() {
    let points = (0..200_000)
        .map(|n| (f64::from(n) * 1e-4, f64::from(n * 7919 % 1000)))
        .collect();
    let html = time_chart().series("long", Style::Line, points).to_html();
    assert!(html.len() < 80_000, "{} bytes", html.len());
}
