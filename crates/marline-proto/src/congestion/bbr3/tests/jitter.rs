//! Delay variation.

use super::*;

/// A controller whose path is full, with a product of 100 kB, after an acknowledgment while delays vary by `variance`.
fn after(config: Bbr3Config, variance: Duration) -> Bbr3 {
    let mut bbr = Bbr3 {
        config,
        ..modelled()
    };
    bbr.exit_slow_start();
    let ack = acked(PRODUCT);
    let rtt = RttView {
        variance,
        ..ack.rtt
    };
    bbr.on_ack(at(100), &AckSample { rtt, ..ack });
    bbr
}

#[test]
fn the_path_holds_more_the_more_its_delays_vary() {
    let product = |millis| after(Bbr3Config::WIRELESS, MS * millis).product(1.0);
    // Four deviations of 15 ms, less half of 40 ms, are 40 ms more.
    assert_eq!(product(15), 2 * PRODUCT);
    assert_eq!(product(25), 3 * PRODUCT);
}

#[test]
fn small_variations_have_room_in_the_window() {
    let bbr = after(Bbr3Config::WIRELESS, MS * 5);
    assert_eq!(bbr.product(1.0), PRODUCT);
}

#[test]
fn the_draft_knows_the_smallest_delay_only() {
    let bbr = after(Bbr3Config::default(), MS * 25);
    assert_eq!(bbr.product(1.0), PRODUCT);
}

#[test]
fn startup_is_not_changed() {
    let mut bbr = Bbr3 {
        config: Bbr3Config::WIRELESS,
        ..modelled()
    };
    let ack = acked(PRODUCT);
    let rtt = RttView {
        variance: RTT / 2,
        ..ack.rtt
    };
    bbr.on_ack(at(100), &AckSample { rtt, ..ack });
    assert_eq!(bbr.product(1.0), PRODUCT);
}

/// A single early packet, with a quarter of the delay, does not keep the window of startup small.
#[test]
fn startup_goes_by_the_delays_of_the_latest_round() {
    let delivered = |first: Duration| {
        let mut bench = Bench {
            bbr: Bbr3::with_settings(&ControllerConfig::new(MTU), Bbr3Config::WIRELESS),
            ..Bench::with(20 * RATE, u64::MAX)
        };
        bench.rtt = first;
        bench.run_while(|bench| bench.delivered == 0);
        bench.rtt = RTT;
        bench.run(RTT * 8);
        bench.delivered
    };
    let (lucky, even) = (delivered(RTT / 4), delivered(RTT));
    assert!(lucky > even / 2, "{lucky}, without {even}");
}
