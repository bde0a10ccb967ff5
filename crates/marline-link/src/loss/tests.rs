use std::num::NonZeroU64;
use std::time::Duration;

use super::*;
use crate::{Seed, Time};

/// The losses of a model.
#[derive(Debug)]
struct Measured {
    /// The share of packets lost.
    lost: f64,
    /// The mean length of a loss burst, in packets.
    burst: f64,
}

/// Measures the losses of `count` packets, one per millisecond.
fn measure(model: &mut dyn LossModel, count: u64) -> Measured {
    let (mut lost, mut runs, mut before) = (0.0, 0.0, false);
    for index in 0..count {
        let loses = model.loses(Time::from_nanos(index * 1_000_000));
        if loses {
            lost += 1.0;
            runs += f64::from(u8::from(!before));
        }
        before = loses;
    }
    Measured {
        lost: lost / count as f64,
        burst: lost / runs,
    }
}

fn near(actual: f64, expected: f64, tolerance: f64) {
    assert!(
        (actual / expected - 1.0).abs() < tolerance,
        "{actual} instead of {expected}"
    );
}

#[test]
fn gilbert_elliott_bursts_have_the_requested_loss_and_length() {
    for (share, burst) in [(0.01, 3.0), (0.02, 4.0)] {
        let mut model = GilbertElliott::of_bursts(share, burst, Seed::new(1));
        near(model.share(), share, 1e-12);
        let found = measure(&mut model, 2_000_000);
        println!("{share} in bursts of {burst}: {found:?}");
        near(found.lost, share, 0.03);
        near(found.burst, burst, 0.03);
    }
}

/// The lengths of loss bursts among `count` packets, one in each `gap`.
fn rows_of(model: &mut dyn LossModel, count: u64, gap: Duration) -> Vec<u64> {
    let (mut rows, mut row) = (Vec::new(), 0);
    for index in 0..count {
        let at = Time::from_nanos(index * gap.as_nanos() as u64);
        match model.loses(at) {
            true => row += 1,
            false => rows.extend(Some(std::mem::take(&mut row)).filter(|row| *row > 0)),
        }
    }
    rows
}

#[test]
fn rows_have_the_requested_length_and_share() {
    let of = |length| Rows::new(0.01, NonZeroU64::new(length).unwrap(), Seed::new(8));
    for length in [1, 5, 10] {
        let found = measure(&mut of(length), 2_000_000);
        near(found.lost, 0.01, 0.03);
        let rows = rows_of(&mut of(length), 2_000_000, Duration::from_millis(1));
        // Two bursts may be adjacent.
        assert!(rows.iter().all(|row| row % length == 0), "{length}");
        near(found.burst, length as f64, 0.02);
    }
}

#[test]
fn rows_end_when_no_packet_arrives_for_a_while() {
    let five = || Rows::new(0.01, NonZeroU64::new(5).unwrap(), Seed::new(9));
    let slow = rows_of(&mut five(), 100_000, Rows::LONGEST_PAUSE);
    assert!(slow.iter().all(|row| row % 5 == 0));
    let pause = Rows::LONGEST_PAUSE + Duration::from_millis(1);
    let slower = rows_of(&mut five(), 100_000, pause);
    let longest = slower.iter().max();
    assert!(longest.is_some_and(|row| *row < 5), "{longest:?}");
}

#[test]
fn gilbert_elliott_loss_matches_its_stationary_distribution() {
    let mut model = GilbertElliott::new(0.02, 0.2, 0.3, 0.995, Seed::new(2));
    let expected = (0.2 * 0.005 + 0.02 * 0.7) / 0.22;
    near(model.share(), expected, 1e-12);
    near(measure(&mut model, 1_000_000).lost, expected, 0.03);
}

#[test]
fn loss_of_zero_and_one_is_exact() {
    let seed = Seed::new(3);
    for (share, expected) in [(0.0, 0.0), (1.0, 1.0)] {
        let found = measure(&mut Bernoulli::new(share, seed), 1000);
        assert_eq!(found.lost, expected);
    }
    for (share, expected) in [(0.0, 0.0), (1.0, 1.0)] {
        let five = NonZeroU64::new(5).unwrap();
        assert_eq!(
            measure(&mut Rows::new(share, five, seed), 1000).lost,
            expected
        );
    }
    assert_eq!(
        measure(&mut GilbertElliott::new(0.0, 0.0, 0.0, 1.0, seed), 1000).lost,
        0.0
    );
    assert_eq!(
        measure(&mut GilbertElliott::of_bursts(0.0, 3.0, seed), 1000).lost,
        0.0
    );
    assert_eq!(
        measure(
            &mut Timed::of_bursts(0.0, Duration::from_millis(1), seed),
            1000
        )
        .lost,
        0.0
    );
}

#[test]
fn timed_bursts_lose_more_packets_at_higher_rates() {
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
        Measured {
            lost: lost / (end / gap) as f64,
            burst: lost / runs,
        }
    };
    let (slow, fast) = (measure(20_000_000), measure(2_000_000));
    near(slow.lost, 0.1, 0.05);
    near(fast.lost, 0.1, 0.05);
    near(fast.burst, 10.5, 0.05);
    assert!(slow.burst < 2.0, "{slow:?}");
}

#[test]
fn timed_states_are_independent_of_the_packets() {
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
fn netem_correlation_reduces_the_loss() {
    let lost = |correlation| {
        measure(
            &mut Correlated::new(0.05, correlation, Seed::new(6)),
            200_000,
        )
    };
    near(lost(0.0).lost, 0.05, 0.05);
    assert!(lost(0.5).lost < 0.02);
    assert_eq!(lost(0.95).lost, 0.0);
}

#[test]
fn four_state_loss_matches_its_stationary_distribution() {
    let probabilities = TransitionProbabilities {
        p13: 0.01,
        p31: 0.2,
        p32: 0.3,
        p23: 0.6,
        p14: 0.005,
    };
    // The stationary distribution of the four states, relative to that of the gap.
    let (single, burst) = (probabilities.p14, probabilities.p13 / probabilities.p31);
    let in_burst = burst * probabilities.p32 / probabilities.p23;
    let expected = (single + burst) / (1.0 + single + burst + in_burst);
    near(
        measure(&mut FourState::new(probabilities, Seed::new(7)), 1_000_000).lost,
        expected,
        0.03,
    );
}

#[test]
fn every_and_listed_lose_exactly_the_given_packets() {
    let hits = |model: &mut dyn LossModel| {
        (0..12_u64)
            .filter(|_| model.loses(Time::ZERO))
            .collect::<Vec<_>>()
    };
    let every = NonZeroU64::new(4).unwrap();
    assert_eq!(hits(&mut Every::new(every)), [3, 7, 11]);
    assert_eq!(hits(&mut Listed::new(vec![5, 0, 5, 40])), [0, 5]);
}
