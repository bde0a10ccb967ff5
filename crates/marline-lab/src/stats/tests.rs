use marline_link::Seed;
use proptest::prelude::*;

use super::*;

const SEED: Seed = Seed::new(1);

/// Random values from 1 to 2.
fn sample(len: usize, seed: u64) -> Vec<f64> {
    use rand::Rng;
    let mut rng = Seed::new(seed).rng();
    (0..len)
        .map(|_| 1.0 + (rng.next_u64() >> 40) as f64 / 16_777_216.0)
        .collect()
}

#[test]
fn summaries_agree_with_values_computed_by_hand() {
    let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0], 100, SEED).unwrap();
    assert_eq!(
        (summary.n, summary.median, summary.mean),
        (4, Some(2.5), Some(2.5))
    );
    assert_eq!((summary.min, summary.max), (Some(1.0), Some(4.0)));
    // 1, 2, 3, 4: the 95th percentile is 0.85 of the way from the third to the fourth.
    assert!((summary.p95.unwrap() - 3.85).abs() < 1e-12);
    assert!((summary.std.unwrap() - 1.290_994_448_735_805_6).abs() < 1e-15);
    assert!((summary.cov.unwrap() - 0.516_397_779_494_322_2).abs() < 1e-15);
    let one = Summary::of(&[7.0], 100, SEED).unwrap();
    assert_eq!((one.std, one.p95, one.ci95), (Some(0.0), Some(7.0), None));
    assert_eq!(Summary::of(&[0.0, 0.0], 100, SEED).unwrap().cov, None);
    assert_eq!(Summary::of(&[], 100, SEED), None);
}

#[test]
fn statistics_that_depend_on_censored_values_are_not_known() {
    assert_eq!(censored_value("completion_s"), f64::INFINITY);
    assert_eq!(censored_value("goodput_mbps"), f64::NEG_INFINITY);
    assert!(censored_value("loss_ratio").is_nan());
    let longer = Summary::of(&[1.0, 2.0, 3.0, f64::INFINITY], 100, SEED).unwrap();
    assert_eq!((longer.n, longer.censored), (4, 1));
    assert_eq!((longer.median, longer.min), (Some(2.5), Some(1.0)));
    assert_eq!(
        (longer.mean, longer.std, longer.p95, longer.max),
        (None, None, None, None)
    );
    let slower = Summary::of(&[1.0, 2.0, 3.0, f64::NEG_INFINITY], 100, SEED).unwrap();
    assert_eq!((slower.median, slower.max), (Some(1.5), Some(3.0)));
    assert_eq!((slower.mean, slower.min), (None, None));
    let none = Summary::of(&[1.0, f64::INFINITY, f64::INFINITY], 100, SEED).unwrap();
    assert_eq!((none.median, none.ci95), (None, None));
    let unbounded = Summary::of(&[1.0, 2.0, 3.0, f64::NAN], 100, SEED).unwrap();
    assert_eq!((unbounded.median, unbounded.min), (None, None));
    let text = serde_json::to_string(&longer).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), longer);
}

#[test]
fn measures_agree_with_values_computed_by_hand() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0];
    let r = pearson(&x, &[2.0, 1.0, 4.0, 3.0, 5.0]).unwrap();
    assert!((r - 0.8).abs() < 1e-15, "{r}");
    assert_eq!(pearson(&x, &[3.0; 5]), None);
    assert_eq!(pearson(&x, &x[..4]), None);
    assert_eq!(jain_index(&[5.0, 5.0]), Some(1.0));
    assert_eq!(jain_index(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
    assert!((jain_index(&[3.0, 1.0]).unwrap() - 0.8).abs() < 1e-15);
    assert_eq!(jain_index(&[0.0]), None);
    assert_eq!(
        ecdf(&[2.0, 1.0, 2.0, 4.0]),
        [(1.0, 0.25), (2.0, 0.75), (4.0, 1.0)]
    );
    assert_eq!(quantile(&[], 0.5).to_bits(), f64::NAN.to_bits());
}

/// Sixteen of {1, 2}'s resamples are known: means 1, 1.5 and 2 with odds 1 : 2 : 1.
#[test]
fn intervals_cover_what_resamples_give() {
    let [low, high] = interval(&[1.0, 2.0], Statistic::Mean, 1000, SEED).unwrap();
    assert_eq!((low, high), (1.0, 2.0));
    let values = sample(200, 3);
    let exact = Summary::of(&values, 10_000, SEED).unwrap();
    let [low, high] = exact.ci95.unwrap();
    let median = exact.median.unwrap();
    assert!(low < median && median < high);
    // The median of 200 even draws from 1 to 2 has a standard error of 0.035.
    assert!((0.08..0.22).contains(&(high - low)), "{low} {high}");
    let mean = interval(&values, Statistic::Mean, 10_000, SEED).unwrap();
    let expected = 3.92 * exact.std.unwrap() / 200_f64.sqrt();
    assert!(((mean[1] - mean[0]) / expected - 1.0).abs() < 0.05);
    assert_eq!(
        interval(&[3.0; 9], Statistic::Median, 10, SEED),
        Some([3.0; 2])
    );
    assert_eq!(interval(&[3.0], Statistic::Median, 10, SEED), None);
    assert_eq!(interval(&values, Statistic::Max, 10, SEED), None);
    // For a normal sample, the standard deviation errs by about s / sqrt(2 n).
    let [low, high] = interval(&values, Statistic::Std, 10_000, SEED).unwrap();
    assert!(
        low < exact.std.unwrap() && exact.std.unwrap() < high,
        "{low} {high}"
    );
    let cov = exact.cov.unwrap();
    let [low, high] = interval(&values, Statistic::Cov, 10_000, SEED).unwrap();
    assert!(low < cov && cov < high && high - low < cov, "{low} {high}");
    assert_eq!(
        interval(&[3.0; 9], Statistic::Cov, 10, SEED),
        Some([0.0; 2])
    );
    let far: Vec<_> = values.iter().map(|x| x + 1e9).collect();
    let near = interval(&values, Statistic::Std, 100, SEED).unwrap();
    let far = interval(&far, Statistic::Std, 100, SEED).unwrap();
    assert!((near[0] - far[0]).abs() < 1e-6 && (near[1] - far[1]).abs() < 1e-6);
}

#[test]
fn paired_values_give_narrow_intervals() {
    let b = sample(100, 5);
    let a: Vec<_> = b.iter().map(|x| x * 0.8).collect();
    for (_, statistic) in Statistic::COMPARED {
        let [low, high] = ratio_interval(&a, &b, statistic, 1000, SEED).unwrap();
        assert!((low - 0.8).abs() < 1e-12 && (high - 0.8).abs() < 1e-12);
    }
    let other = sample(100, 6);
    let [low, high] = ratio_interval(&a, &other, Statistic::Median, 1000, SEED).unwrap();
    assert!(low < 0.8 && 0.8 < high && high - low > 0.02);
    assert_eq!(
        ratio_interval(&a, &[0.0; 100], Statistic::Mean, 10, SEED),
        None
    );
    assert_eq!(ratio_interval(&a, &b[1..], Statistic::Mean, 10, SEED), None);
}

#[test]
fn equal_seeds_give_identical_intervals() {
    let values = sample(50, 9);
    let run = || {
        interval(&values, Statistic::P95, 500, SEED)
            .unwrap()
            .map(f64::to_bits)
    };
    assert_eq!(run(), run());
    let other = interval(&values, Statistic::Mean, 500, Seed::new(2)).unwrap();
    assert_ne!(interval(&values, Statistic::Mean, 500, SEED), Some(other));
}

proptest! {
    /// A quantile of a resample is that of its values, sorted.
    #[test]
    fn quantiles_agree_with_a_sort(
        mut values in prop::collection::vec(-1e6..1e6_f64, 1..60),
        p in 0.0..=1.0_f64,
    ) {
        let found = quantile(&sorted(&values), p);
        values.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let rank = p * (values.len() - 1) as f64;
        let (low, high) = (values[rank.floor() as usize], values[rank.ceil() as usize]);
        prop_assert!(low <= found && found <= high);
        let expected = low + (high - low) * (rank - rank.floor());
        prop_assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0));
    }

    /// Resamples of a resample of equal values are what they count.
    #[test]
    fn intervals_stay_within_the_values(
        values in prop::collection::vec(0.0..10.0_f64, 2..40),
    ) {
        for (_, statistic) in Statistic::COMPARED {
            let [low, high] = interval(&values, statistic, 50, SEED).unwrap();
            let sorted = sorted(&values);
            prop_assert!(sorted[0] <= low + 1e-9 && low <= high);
            prop_assert!(high <= sorted[sorted.len() - 1] + 1e-9);
        }
    }
}
