//! Sections 3.7, 5.5.10, 5.5.11 and 5.6.4.

use super::super::loss::LOSS_THRESHOLD;
use super::*;

/// In `CRUISE`, with a window of two products.
fn cruising() -> Bbr3 {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    bbr.set_window(2 * PRODUCT);
    bbr.state = CRUISE;
    bbr.latest.update(&rated(RATE * 9 / 10, 0));
    bbr
}

#[test]
fn a_round_with_losses_lowers_rate_and_window_to_what_it_delivers() {
    let mut bbr = cruising();
    bbr.on_packet_lost(at(10), &lost_packet(1, MTU, PRODUCT));
    bbr.answer_congestion(at(10), &rated(RATE, 0));
    assert_eq!(bbr.bandwidth_now(), RATE * 9 / 10);
    assert_eq!(bbr.bounds.short_in_flight, 140_000, "0.7 of the window");
    bbr.answer_congestion(at(10), &rated(RATE, 0));
    assert_eq!(bbr.bandwidth_now(), RATE * 9 / 10, "a round without losses");
    assert_eq!(bbr.bandwidth.get(), RATE, "for the next probe");
    bbr.start_refill();
    assert_eq!(bbr.bandwidth_now(), RATE);
}

#[test]
fn a_round_with_losses_leaves_seven_tenths_at_least() {
    let mut bbr = cruising();
    bbr.latest.reset();
    for left in [RATE * 7 / 10, RATE * 49 / 100] {
        bbr.on_packet_lost(at(10), &lost_packet(1, MTU, PRODUCT));
        bbr.answer_congestion(at(10), &rated(RATE, 0));
        assert!(bbr.bandwidth_now().abs_diff(left) <= 1);
    }
}

#[test]
fn losses_while_probing_do_not_lower_the_short_term_bounds() {
    for state in [State::Startup, REFILL, UP] {
        let mut bbr = cruising();
        bbr.state = state;
        bbr.latest.on_loss(0);
        bbr.answer_congestion(at(10), &rated(RATE, 0));
        assert_eq!(bbr.bounds, Bounds::default());
    }
}

#[test]
fn cruising_leaves_headroom() {
    let mut bbr = cruising();
    bbr.bounds.in_flight = PRODUCT;
    for (state, window) in [
        (CRUISE, 85_000),
        (DOWN, PRODUCT),
        (UP, PRODUCT),
        (State::ProbeRtt, 50_000),
    ] {
        bbr.state = state;
        bbr.window = 2 * PRODUCT;
        bbr.update_window(&acked(0));
        assert_eq!(bbr.window(), window, "{state:?}");
    }
}

#[test]
fn the_window_grows_by_what_is_acknowledged_up_to_what_is_needed() {
    let mut bbr = cruising();
    bbr.window = 2 * PRODUCT - 1000;
    bbr.update_window(&acked(0));
    assert_eq!(bbr.window(), 2 * PRODUCT);
    bbr.window = 3 * PRODUCT;
    bbr.update_window(&acked(0));
    assert_eq!(bbr.window(), 2 * PRODUCT);
    bbr.window = PRODUCT;
    let limited = AckSample {
        app_limited: true,
        ..acked(0)
    };
    bbr.update_window(&limited);
    assert_eq!(bbr.window(), PRODUCT);
}

#[test]
fn the_window_comes_back_after_recovery_but_not_after_persistent_congestion() {
    let mut bbr = cruising();
    bbr.on_packet_lost(at(10), &lost_packet(1, MTU, PRODUCT));
    bbr.window = PRODUCT;
    bbr.leave_recovery(at(10));
    assert_eq!(bbr.window(), PRODUCT, "a packet of the old flight");
    bbr.leave_recovery(at(11));
    assert_eq!(bbr.window(), 2 * PRODUCT);
    bbr.on_loss(at(20), &persistent_loss(at(15)));
    assert_eq!(bbr.window(), 4 * MTU);
    assert_eq!(bbr.phase(), Phase::Recovery);
    assert_eq!(bbr.bounds.short_in_flight, 2 * PRODUCT);
    bbr.leave_recovery(at(21));
    assert_eq!(bbr.window(), 4 * MTU);
    assert_eq!(bbr.phase(), Phase::ProbeBw);
    bbr.update_window(&acked(0));
    assert_eq!(bbr.window(), 5 * MTU);
}

#[test]
fn spurious_losses_are_undone() {
    let mut bbr = cruising();
    bbr.on_packet_lost(at(10), &lost_packet(1, MTU, PRODUCT));
    bbr.answer_congestion(at(10), &rated(RATE, 0));
    bbr.window = PRODUCT;
    bbr.on_spurious_loss(at(20), at(5));
    assert_eq!(bbr.bounds, Bounds::default());
    assert_eq!((bbr.window(), bbr.state), (2 * PRODUCT, CRUISE));
}

#[test]
fn a_state_that_spurious_losses_ended_comes_back() {
    let mut bbr = cruising();
    bbr.start_up(&rated(RATE, 0));
    bbr.on_packet_lost(at(10), &lost_packet(1, PRODUCT / 10, PRODUCT));
    bbr.on_packet_lost(at(11), &lost_packet(2, PRODUCT / 10, PRODUCT));
    assert_eq!(bbr.state, DOWN);
    bbr.on_spurious_loss(at(20), at(5));
    assert_eq!((bbr.state, bbr.bounds.in_flight), (REFILL, UNBOUNDED));

    let mut bbr = modelled();
    bbr.on_packet_lost(at(10), &lost_packet(1, PRODUCT / 10, PRODUCT));
    bbr.end_startup_by_congestion();
    bbr.enter_drain();
    bbr.on_spurious_loss(at(20), at(5));
    assert_eq!((bbr.state, bbr.in_slow_start()), (State::Startup, true));
}

#[test]
fn what_marks_demand_is_not_undone() {
    let mut bbr = cruising();
    bbr.on_packet_lost(at(10), &lost_packet(1, MTU, PRODUCT));
    bbr.on_ce(at(10), &mark(1));
    bbr.answer_congestion(at(10), &rated(RATE, 0));
    let bounds = bbr.bounds;
    bbr.on_spurious_loss(at(20), at(5));
    assert_eq!(bbr.bounds, bounds);
}

/// The first mark removes a third of the bytes in flight; later ones in proportion to the average marked part.
#[test]
fn marks_reduce_what_is_in_flight_by_the_part_that_is_marked() {
    let mut bbr = cruising();
    bbr.on_ce(at(0), &mark(1));
    bbr.answer_congestion(at(10), &rated(RATE, 0));
    assert_eq!(bbr.bounds.short_in_flight, 2 * PRODUCT * 2 / 3);
    assert_eq!(bbr.bandwidth_now(), RATE * 9 / 10, "what is delivered");
    for round in 1..100 {
        bbr.marks.end_round(round * PRODUCT, LOSS_THRESHOLD);
    }
    bbr.start_refill();
    bbr.state = CRUISE;
    bbr.latest.update(&rated(2 * RATE, 0));
    bbr.on_ce(at(0), &mark(1));
    bbr.answer_congestion(at(10), &rated(RATE, 0));
    assert!(bbr.bounds.short_in_flight > 2 * PRODUCT * 99 / 100);
}

/// Packets with ECT(0) may be marked as often as lost: 1.7 of 83. With ECT(1), half.
#[test]
fn a_probe_of_which_too_much_is_marked_goes_down() {
    for (l4s, marks, state) in [
        (false, 1, UP),
        (false, 2, DOWN),
        (true, 41, UP),
        (true, 42, DOWN),
    ] {
        let mut bbr = cruising();
        bbr.start_up(&rated(RATE, 0));
        bbr.round_begins = true;
        bbr.delivered = PRODUCT;
        bbr.on_ce(at(0), &CeSample { l4s, ..mark(marks) });
        bbr.update_marks(at(0), &rated(RATE, 0));
        assert_eq!(bbr.state, state, "{marks} of 83 packets, L4S {l4s}");
    }
}

#[test]
fn what_was_in_flight_while_too_much_was_marked_is_not_safe() {
    let bound = |marks: u64| {
        let mut bbr = cruising();
        bbr.bounds.in_flight = PRODUCT / 2;
        bbr.round_begins = true;
        bbr.delivered = PRODUCT;
        if marks > 0 {
            bbr.on_ce(at(0), &mark(marks));
        }
        bbr.update_marks(at(0), &rated(RATE, 0));
        bbr.update_cycle(at(0), &acked(MTU), &rated(RATE, 0));
        bbr.bounds.in_flight
    };
    assert_eq!(bound(0), PRODUCT);
    assert_eq!(bound(2), PRODUCT / 2);
}

#[test]
fn startup_ends_after_two_rounds_of_which_too_much_is_marked() {
    for (l4s, marks) in [(false, 2), (true, 42)] {
        let mut bbr = modelled();
        for round in 1..=2 {
            assert!(bbr.in_slow_start());
            bbr.round_begins = true;
            bbr.delivered = round * PRODUCT;
            bbr.on_ce(at(0), &CeSample { l4s, ..mark(marks) });
            bbr.update_marks(at(0), &rated(RATE, 0));
        }
        assert!(!bbr.in_slow_start());
    }
}

#[test]
fn random_losses_of_one_percent_leave_most_of_the_rate() {
    let mut bench = Bench::with(RATE, PRODUCT);
    bench.loss = 0.01;
    bench.run(Duration::from_secs(1));
    let used = bench.utilization(Duration::from_secs(10));
    assert!(used > 0.7, "{used:.2}");
}
