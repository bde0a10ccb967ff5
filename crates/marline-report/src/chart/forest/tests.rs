//! Forest plots.

use super::*;
use crate::chart::Unit;
use crate::html::nested::{assert_sound, shown};

fn empty() -> Forest {
    Forest::new("gain & more", Axis::new("gain", Unit::Percent))
}

const fn row<'a>(section: &'a str, name: &'a str) -> ForestRow<'a> {
    ForestRow { section, name }
}

const fn interval(low: f64, high: f64) -> Option<Interval> {
    Some(Interval { low, high })
}

#[test]
fn rows_show_intervals_and_published_diamonds() {
    let html = empty()
        .value("over 1c", row("far", "500 kB"), -4.25, interval(-6.0, -2.0))
        .value("over 1c", row("near", "500 kB"), 12.0, None)
        .value(
            "over 3c",
            row("far", "2.4 MB"),
            21.0,
            interval(18.0, f64::NAN),
        )
        .published("over 1c", row("far", "2.4 MB"), 30.0)
        .note("bootstrap & such")
        .to_html();
    assert_sound(&html);
    // One of each is in the legend.
    assert_eq!(html.matches("class=\"ours\"").count(), 4);
    assert_eq!(html.matches("class=\"line s0\"").count(), 2);
    assert_eq!(html.matches("class=\"published open\"").count(), 2);
    // A line for each panel, and the same numbers below both.
    assert_eq!(html.matches("class=\"zero\"").count(), 2);
    assert_eq!(html.matches(">20</text>").count(), 2);
    for part in [
        "over 1c: far, 500 kB, \u{2212}4.25 %, interval \u{2212}6 % to \u{2212}2 %",
        "over 1c: far, 2.4 MB, published 30 %",
        "gain (%)</text>",
        "bootstrap &amp; such",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
    // Rows of a section are adjacent, and it is named once.
    assert_eq!(html.matches(">far</text>").count(), 1);
    let near = html.find(">near</text>").unwrap();
    assert!(html.find(">2.4 MB</text>").unwrap() < near);
}

#[test]
fn sections_are_optional() {
    let html = empty().value("a", row("", "x"), 1.0, None).to_html();
    assert_sound(&html);
    let html = shown(&html);
    assert!(html.contains("a: x, 1 %") && !html.contains(">published</li>"));
    assert!(html.contains(">measured</li>") && !html.contains("interval"));
}

#[test]
fn non_finite_and_extreme_values_give_well_formed_svg() {
    let nothing = empty().value("a", row("", "x"), f64::NAN, None);
    assert!(
        nothing.is_empty()
            && nothing
                .published("a", row("", "x"), f64::INFINITY)
                .is_empty()
    );
    let long = "x".repeat(300);
    let huge = interval(-1e300, 1e300);
    let html = empty()
        .value(&long, row(&long, &long), 1e18, huge)
        .to_html();
    assert_sound(&html);
}
