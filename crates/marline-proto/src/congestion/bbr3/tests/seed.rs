//! Controllers that begin from the model of another connection.

use super::*;
use crate::congestion::PathModel;

/// The model that a connection over `rate` would leave.
fn model(rate: u64) -> PathModel {
    PathModel {
        bandwidth: rate,
        is_limit: true,
        min_rtt: RTT,
        random_loss: 0.0,
    }
}

fn wireless(rate: u64, buffer: u64) -> Bench {
    Bench {
        bbr: Bbr3::with_settings(&ControllerConfig::new(MTU), Bbr3Config::WIRELESS),
        ..Bench::with(rate, buffer)
    }
}

/// After one round trip, from half of the bandwidth of `model`.
fn seeded(rate: u64, buffer: u64, model: &PathModel) -> Bench {
    let mut bench = wireless(rate, buffer);
    bench.run(RTT + 5 * MS);
    let first_rate = model.bandwidth / 2;
    assert!(bench.bbr.seed(bench.now, model, first_rate));
    bench
}

#[test]
fn a_right_seed_reaches_the_rate_without_loss() {
    let mut bench = seeded(RATE, PRODUCT / 2, &model(RATE));
    bench.run(4 * RTT);
    assert!(bench.bbr.bandwidth.get() > RATE * 9 / 10);
    let mut unseeded = wireless(RATE, PRODUCT / 2);
    unseeded.run(5 * RTT + 5 * MS);
    assert!(
        bench.delivered > unseeded.delivered + PRODUCT / 2,
        "{} of {} bytes",
        bench.delivered,
        unseeded.delivered
    );
    assert_eq!(bench.lost, 0, "startup ends at a known limit");
    unseeded.run(3 * RTT);
    assert!(unseeded.lost > 0, "an unknown one is found by losses");
    assert!(bench.utilization(Duration::from_secs(2)) > 0.9);
}

#[test]
fn a_seed_below_the_path_does_not_bound_what_is_found() {
    for is_limit in [true, false] {
        let below = PathModel {
            is_limit,
            ..model(RATE / 8)
        };
        let mut bench = seeded(RATE, PRODUCT, &below);
        bench.run(Duration::from_secs(1));
        let found = bench.bbr.bandwidth.get();
        assert!(found > RATE * 8 / 10, "limit {is_limit}: {found}");
    }
}

#[test]
fn a_seed_of_a_faster_path_ends_startup_at_what_is_delivered() {
    for times in [2, 4, 16] {
        let mut bench = seeded(RATE, 2 * PRODUCT, &model(times * RATE));
        let mut unseeded = wireless(RATE, 2 * PRODUCT);
        bench.run(12 * RTT);
        unseeded.run(13 * RTT);
        let found = bench.bbr.bandwidth.get();
        assert!(found < RATE * 11 / 10, "{times} times: {found}");
        let most = unseeded.lost + times * PRODUCT / 2;
        assert!(bench.lost <= most, "{times} times: {} lost", bench.lost);
        assert!(
            bench.bytes_in_flight() <= 3 * PRODUCT,
            "{times} times: {} in flight",
            bench.bytes_in_flight()
        );
        let used = bench.utilization(Duration::from_secs(2));
        assert!(used > 0.85, "{times} times: {used}");
    }
}

#[test]
fn losses_beyond_chance_of_the_first_round_trip_begin_the_retreat() {
    let mut bench = seeded(RATE / 8, PRODUCT / 32, &model(RATE));
    bench.run(3 * RTT);
    let rate = bench.bbr.pacing_rate(&bench.rtt_view(RTT));
    assert!(rate <= RATE / 4, "{rate}");
    let used = bench.utilization(Duration::from_secs(3));
    assert!(used > 0.8, "{used}");
}

#[test]
fn random_losses_of_the_first_round_trip_are_tolerated() {
    let known = PathModel {
        random_loss: 0.03,
        ..model(RATE)
    };
    let mut slowest = f64::INFINITY;
    for seed in 0..20 {
        let mut bench = wireless(RATE, PRODUCT);
        bench.loss = 0.03;
        bench.rng = Pcg32::seed_from_u64(seed);
        bench.run(RTT + 5 * MS);
        assert!(bench.bbr.seed(bench.now, &known, RATE / 2));
        bench.run(4 * RTT);
        slowest = slowest.min(bench.utilization(4 * RTT));
    }
    assert!(slowest > 0.75, "{slowest}");
}

#[test]
fn losses_by_chance_are_known_from_the_seed_and_forgotten_without_any() {
    let known = PathModel {
        random_loss: 0.05,
        ..model(RATE)
    };
    let mut bench = seeded(RATE, PRODUCT, &known);
    assert!(bench.bbr.random_loss.share() > 0.04);
    bench.run(Duration::from_secs(5));
    assert!(bench.bbr.random_loss.share() < 0.01);
}

#[test]
fn the_smallest_round_trip_time_is_taken_and_expires() {
    let mut bench = seeded(
        RATE,
        PRODUCT,
        &PathModel {
            min_rtt: RTT / 2,
            ..model(RATE)
        },
    );
    assert_eq!(bench.bbr.min_rtt.get(), Some(RTT / 2));
    bench.run(Duration::from_secs(15));
    let min = bench.bbr.min_rtt.get().unwrap();
    assert!(min >= RTT, "{min:?}");
}

#[test]
fn a_seed_is_taken_in_startup_alone() {
    let mut bench = wireless(RATE, PRODUCT);
    bench.until(CRUISE);
    assert!(!bench.bbr.seed(bench.now, &model(RATE), RATE));
    bench.bbr.enter_slow_start();
    assert!(bench.bbr.seed(bench.now, &model(RATE), RATE));
    assert!(!bench.bbr.seed(bench.now, &model(2 * RATE), RATE));
}

#[test]
fn a_seed_that_is_not_sound_is_refused() {
    let unsound = [
        model(0),
        PathModel {
            min_rtt: Duration::ZERO,
            ..model(RATE)
        },
        PathModel {
            random_loss: f64::NAN,
            ..model(RATE)
        },
        PathModel {
            random_loss: 1.5,
            ..model(RATE)
        },
    ];
    for model in unsound {
        let mut bbr = bbr3();
        assert!(!bbr.seed(at(0), &model, RATE), "{model:?}");
    }
    assert!(!bbr3().seed(at(0), &model(RATE), 0));
}
