//! Waterfall charts.

use super::*;
use crate::html::nested::{assert_sound, shown};

fn fetch(name: &str, discovered_s: f64) -> Fetch {
    Fetch {
        name: name.to_owned(),
        discovered_s,
        requested_s: discovered_s + 0.1,
        connected_s: None,
        first_byte_s: Some(discovered_s + 0.2),
        finished_s: Some(discovered_s + 0.5),
    }
}

#[test]
fn a_row_shows_queued_waiting_and_receiving() {
    let html = Waterfall::new("page")
        .fetch(fetch("a<b", 0.0))
        .fetch(fetch("c", 0.5))
        .event("loaded", 1.0)
        .to_html();
    assert_sound(&html);
    // One of each is in the legend.
    for class in ["queued", "waiting", "receiving"] {
        let count = html.matches(&format!("class=\"{class}\"")).count();
        assert_eq!(count, 3, "{class}");
    }
    assert_eq!(html.matches("class=\"event m0\"").count(), 2);
    assert!(!html.contains("class=\"failed\""));
    for part in [
        "a&lt;b: discovered 0 s, requested 100 ms, first byte 200 ms, last byte 500 ms",
        "loaded: 1 s",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
}

#[test]
fn connecting_is_drawn_apart_from_waiting() {
    let connecting = Fetch {
        connected_s: Some(0.15),
        ..fetch("first", 0.0)
    };
    let on_open = Fetch {
        connected_s: Some(0.4),
        ..fetch("second", 0.5)
    };
    let html = Waterfall::new("page")
        .fetch(connecting)
        .fetch(on_open)
        .to_html();
    assert_sound(&html);
    // The other one is in the legend; the second object came to an open connection.
    assert_eq!(html.matches("class=\"connecting\"").count(), 2);
    assert_eq!(html.matches("class=\"waiting\"").count(), 3);
    assert!(html.contains("first: discovered 0 s, requested 100 ms, connected 150 ms, first byte"));
    assert!(html.contains("second: discovered 500 ms, requested 600 ms, first byte"));
}

#[test]
fn unfinished_objects_are_marked_with_a_cross() {
    let never = Fetch {
        first_byte_s: None,
        finished_s: None,
        ..fetch("never", 0.0)
    };
    let halfway = Fetch {
        finished_s: None,
        ..fetch("halfway", 0.0)
    };
    let html = Waterfall::new("page").fetch(never).fetch(halfway).to_html();
    assert_sound(&html);
    let html = shown(&html);
    assert_eq!(html.matches("class=\"failed\"").count(), 3);
    assert_eq!(html.matches("last byte not finished").count(), 2);
}

#[test]
fn long_lists_state_the_number_of_hidden_objects() {
    let page = (0..405_u32).fold(Waterfall::new("page"), |page, n| {
        page.fetch(fetch("object", f64::from(n)))
    });
    let html = page.to_html();
    assert_sound(&html);
    assert!(html.contains("5 further objects are not shown."));
}

#[test]
fn non_finite_and_extreme_times_give_well_formed_svg() {
    let empty = || Waterfall::new("page").until(f64::NAN);
    assert!(empty().is_empty() && empty().fetch(fetch("nan", f64::NAN)).is_empty());
    assert_sound(&empty().to_html());
    for at in [-5.0, 0.0, 1e300] {
        assert_sound(&empty().fetch(fetch("odd", at)).event("m", at).to_html());
    }
}
