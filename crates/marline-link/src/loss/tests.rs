use std::num::NonZeroU64;
use std::time::Duration;

use super::*;
use crate::{Seed, Time};

/// What is lost of `count` packets, one a millisecond, and how long runs of losses are on average.
fn measure(model: &mut dyn LossModel, count: u64) -> (f64, f64) {
    let (mut lost, mut runs, mut before) = (0.0, 0.0, false);
    for index in 0..count {
        let loses = model.loses(Time::from_nanos(index * 1_000_000));
        if loses {
            lost += 1.0;
            runs += f64::from(u8::from(!before));
        }
        before = loses;
    }
    (lost / count as f64, lost / runs)
}

fn near(actual: f64, expected: f64, tolerance: f64) {
    assert!(
        (actual / expected - 1.0).abs() < tolerance,
        "{actual} instead of {expected}"
    );
}

#[test]
fn bursts_have_the_share_and_the_length_they_were_asked_for() {
    for (share, burst) in [(0.01, 3.0), (0.02, 4.0)] {
        let mut model = GilbertElliott::of_bursts(share, burst, Seed::new(1));
        near(model.share(), share, 1e-12);
        let (lost, run) = measure(&mut model, 2_000_000);
        println!("{share} in bursts of {burst}: {lost:.5}, {run:.3}");
        near(lost, share, 0.03);
        near(run, burst, 0.03);
    }
}

#[test]
fn four_parameters_lose_what_the_formula_says() {
    let mut model = GilbertElliott::new(0.02, 0.2, 0.3, 0.995, Seed::new(2));
    let expected = (0.2 * 0.005 + 0.02 * 0.7) / 0.22;
    near(model.share(), expected, 1e-12);
    near(measure(&mut model, 1_000_000).0, expected, 0.03);
}

#[test]
fn nothing_and_everything() {
    let seed = Seed::new(3);
    for (share, expected) in [(0.0, 0.0), (1.0, 1.0)] {
        let (lost, _) = measure(&mut Bernoulli::new(share, seed), 1000);
        assert_eq!(lost, expected);
    }
    assert_eq!(
        measure(&mut GilbertElliott::new(0.0, 0.0, 0.0, 1.0, seed), 1000).0,
        0.0
    );
    assert_eq!(
        measure(&mut GilbertElliott::of_bursts(0.0, 3.0, seed), 1000).0,
        0.0
    );
    assert_eq!(
        measure(
            &mut Timed::of_bursts(0.0, Duration::from_millis(1), seed),
            1000
        )
        .0,
        0.0
    );
}

#[test]
fn bad_times_take_more_packets_the_faster_they_come() {
    let bad = Duration::from_millis(20);
    let measure = |gap: u64| {
        let mut model = Timed::of_bursts(0.1, bad, Seed::new(4));
        let (mut lost, mut runs, mut before) = (0.0, 0.0, false);
        let end = 2_000_000_000_000;
        for at in (0..end).step_by(gap as usize) {
            let loses = model.loses(Time::from_nanos(at));
            lost += f64::from(u8::from(loses));
            runs += f64::from(u8::from(loses && !before));
            before = loses;
        }
        (lost / (end / gap) as f64, lost / runs)
    };
    let (slow, fast) = (measure(20_000_000), measure(2_000_000));
    near(slow.0, 0.1, 0.05);
    near(fast.0, 0.1, 0.05);
    near(fast.1, 10.5, 0.05);
    assert!(slow.1 < 2.0, "{slow:?}");
}

#[test]
fn good_and_bad_times_do_not_depend_on_packets() {
    let model = || Timed::of_bursts(0.3, Duration::from_millis(5), Seed::new(5));
    let (mut sparse, mut dense) = (model(), model());
    for millis in 0..5000_u64 {
        let at = |micros: u64| Time::from_nanos((millis * 1000 + micros) * 1000);
        let seen = [0, 300, 600].map(|micros| dense.loses(at(micros)));
        if millis % 7 == 0 {
            assert_eq!(sparse.loses(at(0)), seen[0]);
        }
    }
}

#[test]
fn correlation_as_in_netem_loses_less_than_was_asked_for() {
    let lost = |correlation| {
        measure(
            &mut Correlated::new(0.05, correlation, Seed::new(6)),
            200_000,
        )
    };
    near(lost(0.0).0, 0.05, 0.05);
    assert!(lost(0.5).0 < 0.02);
    assert_eq!(lost(0.95).0, 0.0);
}

#[test]
fn four_states_make_bursts_and_single_losses() {
    let chances = Chances {
        p13: 0.01,
        p31: 0.2,
        p32: 0.3,
        p23: 0.6,
        p14: 0.005,
    };
    // The balance of the four states, by hand.
    let (single, burst) = (chances.p14, chances.p13 / chances.p31);
    let in_burst = burst * chances.p32 / chances.p23;
    let expected = (single + burst) / (1.0 + single + burst + in_burst);
    near(
        measure(&mut FourState::new(chances, Seed::new(7)), 1_000_000).0,
        expected,
        0.03,
    );
}

#[test]
fn counted_losses_hit_what_they_name() {
    let hits = |model: &mut dyn LossModel| {
        (0..12_u64)
            .filter(|_| model.loses(Time::ZERO))
            .collect::<Vec<_>>()
    };
    let every = NonZeroU64::new(4).unwrap();
    assert_eq!(hits(&mut Every::new(every)), [3, 7, 11]);
    assert_eq!(hits(&mut Listed::new(vec![5, 0, 5, 40])), [0, 5]);
}
