use super::*;

const FIRST: u64 = 12_000;
const RTT: Duration = Duration::from_millis(50);

fn carried(window: u64) -> Carried {
    Carried {
        window,
        rtt: RTT,
        observed: 1000,
        source: 1,
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// One whose client brought this.
fn with(window: u64) -> Carry {
    Carry {
        brought: Some(carried(window)),
        ..Carry::default()
    }
}

#[test]
fn only_who_heeds_it_sees_what_was_brought() {
    let off = CarefulResumeConfig::default();
    let on = CarefulResumeConfig {
        tokens: true,
        ..off
    };
    let brought = |config, now| Carry::new(config, Some(carried(50_000)), now).told();
    assert_eq!(brought(&off, 1000), None);
    assert_eq!(brought(&on, 1000 + 3600), Some(carried(50_000)));
    assert_eq!(brought(&on, 1000 + 3601), None);
}

#[test]
fn the_first_news_is_four_first_windows() {
    let mut carry = Carry::default();
    assert!(!carry.is_news(at(0), FIRST, 4 * FIRST - 1, RTT));
    assert!(carry.is_news(at(0), FIRST, 4 * FIRST, RTT));
}

#[test]
fn twice_as_much_is_news_and_half_as_much_after_a_while() {
    let mut carry = with(100_000);
    for window in [199_999, 100_000, 50_001] {
        assert!(!carry.is_news(at(0), FIRST, window, RTT), "{window}");
    }
    assert!(carry.is_news(at(0), FIRST, 200_000, RTT));
    assert!(!carry.is_news(at(0), FIRST, 50_000, RTT));
    assert!(!carry.is_news(at(499), FIRST, 20_000, RTT));
    assert!(carry.is_news(at(500), FIRST, 20_000, RTT));
    // It came back in between.
    assert!(!carry.is_news(at(600), FIRST, 60_000, RTT));
    assert!(!carry.is_news(at(700), FIRST, 20_000, RTT));
    carry.given = Some(carried(30_000));
    assert!(
        carry.is_news(at(700), FIRST, 60_000, RTT),
        "what counts is told last"
    );
}

#[test]
fn another_path_has_no_part_in_it() {
    let mut carry = with(100_000);
    carry.given = Some(carried(200_000));
    carry.tokens = 3;
    carry.leave_path();
    assert_eq!(carry.told(), None);
    assert_eq!(carry.tokens, 3);
}
