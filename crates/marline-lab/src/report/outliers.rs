//! Axes that a few extreme values must not flatten.

use crate::stats::{quantile, sorted};

/// Fewer values are always shown as they are.
const FEWEST: usize = 8;
/// Values above the third quartile plus this many interquartile ranges are far out (Tukey, Exploratory Data Analysis,
/// 1977, section 2D).
const FAR_OUT: f64 = 3.0;
/// Values that are far out stay on the axis if the others keep at least the inverse of this of its length.
const ROOM: f64 = 3.0;

/// The part of some values that an axis from zero shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reach {
    /// The largest value that it shows; zero if there is none.
    pub(super) top: f64,
    /// The number of larger values.
    pub(super) beyond: usize,
    /// The largest of all values.
    pub(super) largest: f64,
}

impl Reach {
    /// Shows all of `values`, except extremes that would leave most of the axis empty.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let values = sorted(&values.collect::<Vec<_>>());
        let largest = values.last().copied().unwrap_or_default();
        let whole = Self {
            top: largest.max(0.0),
            beyond: 0,
            largest,
        };
        let [low, high] = [0.25, 0.75].map(|share| quantile(&values, share));
        let end = ROOM * (high + FAR_OUT * (high - low));
        // Where most values are zero, the others are of interest.
        if values.len() < FEWEST || high <= 0.0 || largest <= end {
            return whole;
        }
        let shown = values.partition_point(|value| *value <= end);
        Self {
            top: values[..shown].last().copied().unwrap_or_default(),
            beyond: values.len() - shown,
            largest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(middle: f64, count: u32) -> impl Iterator<Item = f64> {
        (0..count).map(move |n| middle * (1.0 + 0.01 * f64::from(n % 10)))
    }

    #[test]
    fn one_late_sample_does_not_flatten_the_others() {
        let reach = Reach::of(around(0.05, 50).chain([1.0]));
        assert!((0.05..0.06).contains(&reach.top), "{reach:?}");
        assert_eq!((reach.beyond, reach.largest), (1, 1.0));
    }

    #[test]
    fn a_queue_that_fills_for_a_third_of_the_samples_is_shown() {
        let reach = Reach::of(around(0.05, 60).chain(around(0.5, 30)));
        assert_eq!((reach.top, reach.beyond), (reach.largest, 0));
    }

    #[test]
    fn values_of_twice_the_usual_size_stay_on_the_axis() {
        let reach = Reach::of(around(0.05, 60).chain([0.12]));
        assert_eq!((reach.top, reach.beyond), (0.12, 0));
    }

    #[test]
    fn few_values_and_mostly_zeros_are_shown_whole() {
        assert_eq!(Reach::of([0.05, 0.05, 1.0].into_iter()).beyond, 0);
        assert_eq!(Reach::of((0..20).map(|n| f64::from(n / 19))).beyond, 0);
        assert_eq!(Reach::of(std::iter::empty()).top, 0.0);
    }
}
