//! Heat maps.

use super::*;
use crate::chart::Unit;
use crate::html::nested::assert_sound;

fn empty(unit: Unit) -> Heat {
    Heat::new("sweep", "RTT", "loss", Axis::new("time", unit))
}

const fn interval(low: f64, high: f64) -> Interval {
    Interval { low, high }
}

#[test]
fn every_cell_shows_its_value() {
    let html = empty(Unit::Seconds)
        .cell("10 ms", "0 %", 0.2)
        .cell("20 ms", "0 %", 0.345)
        .cell("10 ms", "<1 %", 1.5)
        .cell("20 ms", "<1 %", f64::NAN)
        .to_html();
    assert_sound(&html);
    assert_eq!(html.matches("class=\"value mid\"").count(), 4);
    for part in [
        ">0.20</text>",
        ">1.50</text>",
        ">\u{2013}</text>",
        "10 ms, &lt;1 %: 1.5 s",
        "20 ms, &lt;1 %: no value",
        "Numbers: time in s.",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
}

#[test]
fn values_below_zero_have_another_color() {
    let heat = empty(Unit::Percent)
        .cell("a", "b", 30.0)
        .cell("b", "b", -10.0);
    assert_eq!(heat.range(), interval(0.0, 30.0));
    let full = Shade {
        color: 'w',
        opacity: STRONGEST,
    };
    assert_eq!(heat.shade(30.0), full);
    let Shade { color, opacity } = heat.shade(-10.0);
    assert_eq!(color, 'c');
    assert!(opacity > WEAKEST && opacity < STRONGEST / 2.0);
    // Two of five in the legend, and one in the map.
    assert_eq!(heat.to_html().matches("class=\"corner\"").count(), 3);
}

#[test]
fn fixed_ends_set_the_range_of_shades() {
    let values = Axis::new("gain", Unit::Percent).spanning(-50.0, 40.0);
    let heat = Heat::new("", "", "", values).cell("a", "b", 1.0);
    assert_eq!(heat.range(), interval(0.0, 50.0));
}

#[test]
fn non_finite_and_extreme_values_give_well_formed_svg() {
    assert!(empty(Unit::Number).is_empty());
    assert!(empty(Unit::Number).cell("a", "b", f64::NAN).is_empty());
    assert_sound(&empty(Unit::Number).to_html());
    for value in [0.0, 1e300, f64::MIN, f64::MAX] {
        let heat = empty(Unit::Bytes)
            .cell("a", "b", value)
            .cell("a", "c", -value);
        assert_sound(&heat.to_html());
    }
}
