//! Bar charts.

use super::*;
use crate::chart::Unit;
use crate::html::nested::assert_sound;

fn empty() -> Bars {
    Bars::new("gain", "location", Axis::new("gain", Unit::Percent))
}

const fn interval(low: f64, high: f64) -> Option<Interval> {
    Some(Interval { low, high })
}

#[test]
fn bars_show_intervals_values_and_published_marks() {
    let html = empty()
        .bar("near", "3c", -4.25, interval(-6.0, -2.0))
        .bar("near", "bundle", 21.04, interval(18.0, f64::NAN))
        .bar("far", "bundle", f64::INFINITY, None)
        .published("far", "bundle", 30.0)
        .note("bootstrap & such")
        .to_html();
    assert_sound(&html);
    // One of each is in the legend.
    assert_eq!(html.matches("class=\"box").count(), 4);
    assert_eq!(html.matches("class=\"interval\"").count(), 2);
    assert_eq!(html.matches("class=\"published\"").count(), 2);
    assert_eq!(html.matches("class=\"zero\"").count(), 1);
    for part in [
        ">\u{2212}4.2</text>",
        ">21.0</text>",
        "3c, near: \u{2212}4.25 %, interval \u{2212}6 % to \u{2212}2 %",
        "bundle, far: published 30 %",
        "bootstrap &amp; such",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
}

#[test]
fn the_scale_leaves_space_for_values_of_bars() {
    let scale = empty()
        .bar("a", "b", 10.0, None)
        .bar("c", "b", -10.0, None)
        .scale();
    assert!(scale.from < -10.0 && scale.to > 10.0);
    let scale = empty().bar("a", "b", 10.0, None).scale();
    assert_eq!(scale.from, 0.0);
}

#[test]
fn values_are_omitted_if_they_do_not_fit() {
    let bars = (0..60).fold(empty(), |bars, group| {
        bars.bar(&format!("g{group}"), "s", 12_345.0, None)
    });
    let html = bars.to_html();
    assert_sound(&html);
    assert!(!html.contains(">12\u{202f}345</text>"));
}

#[test]
fn non_finite_and_extreme_values_give_well_formed_svg() {
    assert!(empty().is_empty() && empty().bar("a", "b", f64::NAN, None).is_empty());
    assert_sound(&empty().to_html());
    for value in [0.0, -0.0, 1e300, f64::MIN, 1e-300] {
        assert_sound(
            &empty()
                .bar("a", "b", value, interval(-value, value))
                .to_html(),
        );
    }
}
