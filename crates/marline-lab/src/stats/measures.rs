//! Relations within and between samples.

use super::sorted;
use super::summary::mean;

/// Pearson's correlation of `a` and `b`, from -1 to 1; `None` if one of them is constant, or if their lengths
/// differ.
pub fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut both, mut only_a, mut only_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        both += a * b;
        only_a += a * a;
        only_b += b * b;
    }
    let correlation = both / (only_a.sqrt() * only_b.sqrt());
    correlation
        .is_finite()
        .then(|| correlation.clamp(-1.0, 1.0))
}

/// Jain's fairness index of `shares` (Jain, Chiu and Hawe, 1984): 1 if all are equal, 1/n if one has
/// everything. `None` if all are 0.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let index = sum * sum / (shares.len() as f64 * squares);
    index.is_finite().then_some(index)
}

/// The empirical distribution: each distinct value, and the share of values up to it.
pub fn ecdf(values: &[f64]) -> Vec<(f64, f64)> {
    let sorted = sorted(values);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, value) in sorted.iter().enumerate() {
        let share = (index + 1) as f64 / sorted.len() as f64;
        match points.last_mut() {
            Some(last) if last.0 == *value => last.1 = share,
            _ => points.push((*value, share)),
        }
    }
    points
}
