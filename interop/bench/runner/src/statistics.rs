//! Medians and other quantiles.

/// The median of `values`; `None` if empty.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(values[middle - 1], upper))
}

/// The smallest of `values` that `share` of them do not exceed; `None` if empty.
pub(crate) fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd_counts() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values = || (1..=20).map(f64::from).collect::<Vec<_>>();
        assert_eq!(quantile(values(), 0.95), Some(19.0));
        assert_eq!(quantile(values(), 1.0), Some(20.0));
        assert_eq!(quantile(vec![3.0], 0.95), Some(3.0));
        assert_eq!(quantile(vec![], 0.95), None);
    }
}
