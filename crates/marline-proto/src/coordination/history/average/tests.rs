use proptest::prelude::*;

use super::*;

fn any_average() -> impl Strategy<Value = Average> {
    prop_oneof![
        Just(Average::Mean),
        (0..40_usize).prop_map(Average::Window),
        prop_oneof![0.0..=1.0, Just(f64::NAN), Just(-1.0), Just(2.0)]
            .prop_map(|weight| Average::Ewma { weight }),
    ]
}

fn of(kind: Average, samples: &[u64]) -> Option<f64> {
    let mut windows = Windows::default();
    for bytes in samples {
        windows.add(kind, *bytes);
    }
    windows.average(kind)
}

#[test]
fn the_mean_matches_the_example_of_the_paper() {
    assert_eq!(of(Average::Mean, &[4500, 3000]), Some(3750.0));
}

#[test]
fn there_is_no_average_before_the_first_sample() {
    for kind in [
        Average::Mean,
        Average::Window(4),
        Average::Ewma { weight: 0.125 },
    ] {
        assert_eq!(of(kind, &[]), None);
        assert_eq!(of(kind, &[0]), Some(0.0));
    }
}

#[test]
fn the_first_sample_initializes_a_moving_average() {
    let kind = Average::Ewma { weight: 0.125 };
    assert_eq!(of(kind, &[80_000]), Some(80_000.0));
    assert_eq!(of(kind, &[80_000, 40_000]), Some(75_000.0));
}

#[test]
fn an_invalid_weight_counts_as_one() {
    for weight in [f64::NAN, 0.0, -0.5, 1.5, f64::INFINITY] {
        assert_eq!(of(Average::Ewma { weight }, &[10, 30]), Some(30.0));
    }
}

#[test]
fn a_mean_at_its_sample_limit_stays_within_its_samples() {
    let sum = MEAN_SAMPLES * MAXIMUM_WINDOW;
    let count = MEAN_SAMPLES;
    let mut windows = Windows(State::Mean { sum, count });
    windows.add(Average::Mean, MAXIMUM_WINDOW);
    assert_eq!(windows.0, State::Mean { sum, count });
    windows.add(Average::Mean, 0);
    let average = windows.average(Average::Mean).unwrap();
    assert!(average < MAXIMUM_WINDOW as f64 && average > 0.99 * MAXIMUM_WINDOW as f64);
    assert!(windows.0.is_sound());
}

#[test]
fn the_average_of_another_kind_counts_as_one_sample() {
    let mut windows = Windows::default();
    windows.add(Average::Mean, 10_000);
    windows.add(Average::Mean, 20_000);
    assert_eq!(windows.average(Average::Window(3)), Some(15_000.0));
    windows.add(Average::Window(3), 30_000);
    assert_eq!(windows.average(Average::Window(3)), Some(22_500.0));
}

proptest! {
    #[test]
    fn an_average_lies_between_its_least_and_its_greatest_sample(
        kind in any_average(),
        samples in prop::collection::vec(prop_oneof![0..=MAXIMUM_WINDOW, any::<u64>()], 1..80),
    ) {
        let bounded = samples.iter().map(|bytes| (*bytes).min(MAXIMUM_WINDOW));
        let (least, greatest) = (bounded.clone().min().unwrap(), bounded.max().unwrap());
        let average = of(kind, &samples).unwrap();
        prop_assert!((least as f64..=greatest as f64).contains(&average), "{}", average);
    }

    #[test]
    fn a_window_averages_its_latest_samples_only(
        size in 1..=MAX_WINDOW_SAMPLES,
        before in prop::collection::vec(0..=MAXIMUM_WINDOW, 0..70),
        latest in prop::collection::vec(0..=MAXIMUM_WINDOW, MAX_WINDOW_SAMPLES),
    ) {
        let kind = Average::Window(size);
        let latest = &latest[..size];
        let all: Vec<_> = before.iter().chain(latest).copied().collect();
        prop_assert_eq!(of(kind, &all), of(kind, latest));
        let sum: u64 = latest.iter().sum();
        prop_assert_eq!(of(kind, latest), Some(sum as f64 / size as f64));
    }

    #[test]
    fn every_state_reached_by_samples_is_sound(
        samples in prop::collection::vec((any_average(), any::<u64>()), 0..80),
    ) {
        let mut windows = Windows::default();
        for (kind, bytes) in samples {
            windows.add(kind, bytes);
            prop_assert!(windows.0.is_sound());
            prop_assert!(windows.average(kind).is_some());
        }
    }
}
