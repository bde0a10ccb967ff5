//! Quantiles.

/// The quantile `p`, from 0 to 1, of `sorted` values: between the two nearest of them in proportion
/// (type 7 of Hyndman and Fan, 1996). NaN if there are none.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let (below, share) = position(last, p);
    let low = sorted[below];
    let high = sorted[(below + 1).min(last)];
    between(low, high, share)
}

/// The rank below the quantile `p` of values with ranks 0 to `last`, and how far beyond it lies.
pub(super) fn position(last: usize, p: f64) -> (usize, f64) {
    let rank = last as f64 * p.clamp(0.0, 1.0);
    let below = rank as usize;
    (below, rank - below as f64)
}

/// The value `share` of the way from `low` to `high`.
pub(super) fn between(low: f64, high: f64, share: f64) -> f64 {
    if share == 0.0 || low == high {
        low
    } else {
        low + (high - low) * share
    }
}

/// The values in order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}
