use super::*;

const FIRST: u64 = 12_000;
const RTT: Duration = Duration::from_millis(50);

fn capacity(window: u64) -> TokenCapacity {
    TokenCapacity {
        window,
        rtt: RTT,
        observed: 1000,
        source: 1,
        model: None,
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn with_received(window: u64) -> CapacityTokens {
    CapacityTokens {
        received: Some(capacity(window)),
        ..CapacityTokens::default()
    }
}

#[test]
fn a_received_capacity_counts_only_where_tokens_are_used_and_for_its_lifetime() {
    let off = CarefulResumeConfig::default();
    let on = CarefulResumeConfig {
        tokens: true,
        ..off
    };
    let current = |config, now| CapacityTokens::new(config, Some(capacity(50_000)), now).current();
    assert_eq!(current(&off, 1000), None);
    assert_eq!(current(&on, 1000 + 3600), Some(capacity(50_000)));
    assert_eq!(current(&on, 1000 + 3601), None);
}

#[test]
fn the_first_token_needs_a_window_of_four_initial_windows() {
    let mut tokens = CapacityTokens::default();
    assert!(!tokens.needs_token(at(0), FIRST, 4 * FIRST - 1, RTT));
    assert!(tokens.needs_token(at(0), FIRST, 4 * FIRST, RTT));
}

#[test]
fn a_doubled_window_needs_a_token_at_once_and_a_halved_one_after_ten_round_trips() {
    let mut tokens = with_received(100_000);
    for window in [199_999, 100_000, 50_001] {
        assert!(!tokens.needs_token(at(0), FIRST, window, RTT), "{window}");
    }
    assert!(tokens.needs_token(at(0), FIRST, 200_000, RTT));
    assert!(!tokens.needs_token(at(0), FIRST, 50_000, RTT));
    assert!(!tokens.needs_token(at(499), FIRST, 20_000, RTT));
    assert!(tokens.needs_token(at(500), FIRST, 20_000, RTT));
    // A larger window in between restarts the ten round trips.
    assert!(!tokens.needs_token(at(600), FIRST, 60_000, RTT));
    assert!(!tokens.needs_token(at(700), FIRST, 20_000, RTT));
    tokens.issued = Some(capacity(30_000));
    assert!(
        tokens.needs_token(at(700), FIRST, 60_000, RTT),
        "the issued token counts, not the received one"
    );
}

#[test]
fn another_path_begins_without_a_capacity_and_keeps_the_count_of_tokens() {
    let mut tokens = with_received(100_000);
    tokens.issued = Some(capacity(200_000));
    tokens.issued_count = 3;
    tokens.leave_path();
    assert_eq!(tokens.current(), None);
    assert_eq!(tokens.issued_count, 3);
}
