//! Quantiles.

/// The quantile `p`, from 0 to 1, of `sorted` values, by linear interpolation (type 7 of Hyndman and Fan,
/// 1996). NaN without values.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let Position { below, share } = position(last, p);
    let low = sorted[below];
    let high = sorted[(below + 1).min(last)];
    between(low, high, share)
}

/// The position of a quantile among ranked values.
pub(super) struct Position {
    /// The rank below it.
    pub(super) below: usize,
    /// The distance beyond that rank, from 0 to 1.
    pub(super) share: f64,
}

/// The position of the quantile `p` of values with ranks 0 to `last`.
pub(super) fn position(last: usize, p: f64) -> Position {
    let rank = last as f64 * p.clamp(0.0, 1.0);
    let below = rank as usize;
    Position {
        below,
        share: rank - below as f64,
    }
}

/// Interpolates: `share` 0 is `low`, and 1 is `high`.
pub(super) fn between(low: f64, high: f64, share: f64) -> f64 {
    if share == 0.0 || low == high {
        low
    } else {
        low + (high - low) * share
    }
}

/// The values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}
