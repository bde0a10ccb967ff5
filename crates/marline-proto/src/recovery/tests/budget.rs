//! Window and pacer (section 7).

use super::*;

#[test]
fn window_bounds_what_is_in_flight() {
    let mut bench = Bench::new();
    let full = bench.window() / u64::from(SIZE);
    bench.send_many(at(0), full - 1);
    assert!(bench.recovery.may_send(at(0), SIZE.into()));
    bench.send(at(0));
    assert!(!bench.recovery.may_send(at(0), SIZE.into()));
    assert_eq!(bench.recovery.paced_until(), None, "it waits for the peer");
}

/// Section 7.7.
#[test]
fn pacer_spreads_what_the_window_would_let_leave() {
    let mut bench = Bench::with(Algorithm::NewReno, Some(Pacer::new(SIZE.into())));
    bench.recovery.controller_mut().set_window(120_000);
    bench.send(at(0));
    bench.ack(at(100), 0..=0);
    let mut burst = 0;
    while bench.recovery.may_send(at(100), SIZE.into()) {
        bench.send(at(100));
        burst += 1;
    }
    assert!(burst < 100, "{burst} packets at once");
    let until = bench.recovery.paced_until().expect("the pacer waits");
    assert!(until > at(100));
    assert!(bench.recovery.may_send(until, SIZE.into()));
}

#[test]
fn path_without_anything_waiting_does_not_wake_for_the_pacer() {
    let mut bench = Bench::with(Algorithm::NewReno, Some(Pacer::new(SIZE.into())));
    bench.recovery.controller_mut().set_window(120_000);
    while bench.recovery.may_send(at(0), SIZE.into()) {
        bench.send(at(0));
    }
    bench.recovery.on_congestion_limited(true);
    assert!(bench.recovery.paced_until().is_some());
    assert!(!bench.recovery.is_app_limited());
    bench.recovery.on_congestion_limited(false);
    assert_eq!(bench.recovery.paced_until(), None);
}

#[test]
fn lack_of_data_makes_the_path_application_limited() {
    let mut bench = Bench::new();
    bench.recovery.on_congestion_limited(true);
    assert!(!bench.recovery.is_app_limited());
    bench.recovery.on_app_limited();
    assert!(bench.recovery.is_app_limited());
}

#[test]
fn unvalidated_rate_overrides_the_controller() {
    let mut bench = Bench::with(Algorithm::NewReno, Some(Pacer::new(SIZE.into())));
    bench.recovery.set_unvalidated_rate(Some(12_345));
    assert_eq!(bench.recovery.pacing_rate(), Some(12_345));
    bench.recovery.set_unvalidated_rate(None);
    assert_ne!(bench.recovery.pacing_rate(), Some(12_345));
}

#[test]
fn path_that_is_not_paced_has_no_rate() {
    assert_eq!(Bench::new().recovery.pacing_rate(), None);
}

#[test]
fn learnt_initial_window_is_taken_unless_the_path_met_congestion() {
    let mut bench = Bench::new();
    bench.recovery.learn_initial_window(100_000);
    assert_eq!(bench.window(), 100_000);
    assert_eq!(bench.recovery.initial_window().bytes, 100_000);

    let mut congested = Bench::with_rtt(50);
    congested.send_many(at(100), 4);
    congested.ack(at(150), 4..=4);
    assert!(congested.recovery.had_congestion());
    let window = congested.window();
    congested.recovery.learn_initial_window(100_000);
    assert_eq!(congested.window(), window);
}

#[test]
fn learnt_initial_window_that_the_path_has_opened_already_changes_nothing() {
    let mut bench = Bench::new();
    assert!(!bench.recovery.had_congestion());
    let first = bench.recovery.initial_window();
    bench.recovery.controller_mut().set_window(50_000);
    for bytes in [40_000, 50_000] {
        bench.recovery.learn_initial_window(bytes);
        assert_eq!(bench.window(), 50_000);
        assert_eq!(bench.recovery.initial_window(), first);
    }
}

#[test]
fn learnt_initial_window_is_spread_over_a_round_trip() {
    let mut bench = Bench::with(Algorithm::NewReno, Some(Pacer::new(SIZE.into())));
    bench.send(at(0));
    bench.ack(at(100), 0..=0);
    bench.recovery.learn_initial_window(120_000);
    bench.send_many(at(100), 98);
    assert_eq!(bench.recovery.pacing_rate(), Some(1_200_000));
    bench.send(at(100));
    assert_ne!(bench.recovery.pacing_rate(), Some(1_200_000), "it has left");
}

/// Section 7.7: the controller determines the pacing rate.
#[test]
fn initial_window_that_was_not_learnt_is_paced_by_the_controller() {
    let bench = Bench::with(Algorithm::NewReno, Some(Pacer::new(SIZE.into())));
    let rtt = bench.recovery.rtt().view();
    let rate = bench.recovery.controller().pacing_rate(&rtt);
    assert_eq!(bench.recovery.pacing_rate(), Some(rate));
}

#[test]
fn losses_of_the_first_flight_are_remembered() {
    let mut bench = Bench::new();
    bench.send_many(at(0), 4);
    bench.ack(at(50), 3..=3);
    assert!(bench.recovery.had_congestion_at_first());

    let mut later = Bench::with_rtt(50);
    later.send_many(at(100), 20);
    later.ack(at(150), 1..=20);
    later.send_many(at(200), 4);
    later.ack(at(250), 24..=24);
    assert!(!later.recovery.had_congestion_at_first());
    assert_eq!(later.recovery.delivered(), 22 * 1_200);
}

#[test]
fn return_to_an_earlier_host_gives_up_a_learnt_window() {
    let mut bench = Bench::new();
    let first = bench.recovery.initial_window();
    bench.recovery.controller_mut().set_window(50_000);
    assert!(!bench.recovery.return_to(first), "nothing was learnt");
    bench.recovery.learn_initial_window(100_000);
    bench.recovery.controller_mut().set_window(first.bytes);
    assert!(!bench.recovery.return_to(first), "it is not larger");
    bench.recovery.controller_mut().set_window(100_000);
    assert!(bench.recovery.return_to(first));
    assert_eq!(bench.window(), first.bytes);
}

/// RFC 9438, section 5.8: the controller is told how long no packet was in flight, regardless of the outcome of the
/// last packet.
#[test]
fn path_is_idle_from_when_its_last_packet_is_acknowledged_or_lost() {
    let mut bench = Bench::with_rtt(80);
    assert_eq!(bench.recovery.budget.idle_since(), Some(at(80)));
    bench.send_many(at(100), 2);
    bench.ack(at(180), 2..=2);
    assert_eq!(bench.recovery.budget.idle_since(), None);
    bench.detect(at(190));
    assert_eq!(bench.seen.lost, [1]);
    assert_eq!(bench.recovery.budget.idle_since(), Some(at(190)));
    bench.send(at(300));
    assert_eq!(bench.recovery.budget.idle_since(), None);
}

#[test]
fn window_that_holds_data_back_is_remembered() {
    let mut bench = Bench::new();
    let room = bench.window() - u64::from(SIZE);
    bench.send(at(0));
    assert!(bench.recovery.has_window(room));
    assert!(!bench.recovery.has_window(room + 1));
    assert!(!bench.recovery.was_window_limited());
    bench.recovery.on_window_limited();
    bench.ack(at(50), 0..=0);
    assert!(bench.recovery.was_window_limited());
}
