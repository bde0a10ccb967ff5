use super::*;
use proptest::prelude::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn assumes_the_initial_value() {
    let rtt = RttEstimator::default();
    assert!(!rtt.has_sample());
    assert_eq!(rtt.smoothed(), ms(333));
    assert_eq!(rtt.pto(), ms(333) + 4 * (ms(333) / 2));
}

#[test]
fn the_first_sample_replaces_everything() {
    let mut rtt = RttEstimator::default();
    rtt.update(ms(40), ms(10), false, ms(25));
    assert!(rtt.has_sample());
    assert_eq!(
        rtt.view(),
        RttView {
            latest: ms(40),
            adjusted: ms(40),
            smoothed: ms(40),
            min: ms(40),
            variance: ms(20),
        }
    );
}

#[test]
fn delays_are_subtracted_unless_that_would_fall_below_the_minimum() {
    let mut rtt = RttEstimator::default();
    rtt.update(ms(40), ms(0), true, ms(25));
    rtt.update(ms(64), ms(16), true, ms(25));
    assert_eq!(rtt.view().adjusted, ms(48));
    assert_eq!(rtt.smoothed(), ms(41)); // (7 * 40 + 48) / 8
    assert_eq!(rtt.variance(), ms(17)); // (3 * 20 + 8) / 4

    let mut rtt = RttEstimator::default();
    rtt.update(ms(40), ms(0), true, ms(25));
    rtt.update(ms(48), ms(16), true, ms(25));
    assert_eq!(rtt.view().adjusted, ms(48));
    assert_eq!(rtt.smoothed(), ms(41));
}

#[test]
fn promised_delays_count_once_the_handshake_is_confirmed() {
    let mut rtt = RttEstimator::default();
    rtt.update(ms(40), ms(0), true, ms(25));
    rtt.update(ms(113), ms(70), true, ms(25));
    assert_eq!(rtt.smoothed(), ms(46)); // (7 * 40 + 88) / 8

    let mut rtt = RttEstimator::default();
    rtt.update(ms(40), ms(0), false, ms(25));
    rtt.update(ms(118), ms(70), false, ms(25));
    assert_eq!(rtt.smoothed(), ms(41)); // (7 * 40 + 48) / 8
}

#[test]
fn the_minimum_can_be_forgotten() {
    let mut rtt = RttEstimator::default();
    rtt.update(ms(10), ms(0), true, ms(25));
    rtt.update(ms(100), ms(0), true, ms(25));
    assert_eq!(rtt.min(), ms(10));
    rtt.reset_min();
    assert_eq!(rtt.min(), ms(100));
}

proptest! {
    #[test]
    fn stays_between_the_samples(samples in prop::collection::vec((1_u64..10_000_000, 0_u64..100_000), 1..100)) {
        let mut rtt = RttEstimator::default();
        for (sample, delay) in &samples {
            rtt.update(Duration::from_micros(*sample), Duration::from_micros(*delay), true, ms(25));
        }
        let least = samples.iter().map(|(sample, _)| *sample).min().unwrap_or_default();
        let most = samples.iter().map(|(sample, _)| *sample).max().unwrap_or_default();
        prop_assert_eq!(rtt.min(), Duration::from_micros(least));
        // Averages are rounded down by less than a nanosecond per sample.
        prop_assert!(rtt.smoothed() + Duration::from_nanos(100) >= rtt.min());
        prop_assert!(rtt.smoothed() <= Duration::from_micros(most));
    }

    #[test]
    fn survives_any_number(samples in prop::collection::vec(any::<(u64, u64, bool)>(), 1..50)) {
        let mut rtt = RttEstimator::default();
        for (sample, delay, confirmed) in samples {
            rtt.update(Duration::from_nanos(sample), Duration::from_micros(delay), confirmed, ms(25));
            prop_assert!(rtt.pto() >= rtt.smoothed());
        }
    }
}
