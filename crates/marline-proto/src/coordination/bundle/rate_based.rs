//! Synchronizing rates (section IV-C), for controllers that work with a rate, such as BBR.

/// Makes all rates equal to their mean if the largest exceeds the smallest by more than `imbalance`
/// times. Returns whether it did.
///
/// Nothing changes if any rate is unknown. Any rate above zero exceeds a rate of zero.
pub fn equalize_rates(rates: &mut [Option<f64>], imbalance: f64) -> bool {
    let mut sum = 0.0;
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for rate in rates.iter() {
        let Some(rate) = *rate else { return false };
        sum += rate;
        least = least.min(rate);
        most = most.max(rate);
    }
    if most <= imbalance * least || most <= 0.0 {
        return false;
    }
    let mean = sum / rates.len() as f64;
    rates.fill(Some(mean));
    true
}
