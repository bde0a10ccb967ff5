//! Distributions of delay variation.

use std::f64::consts::SQRT_2;
use std::sync::Arc;

use rand_pcg::Pcg64Mcg;

use super::Table;
use crate::random::{bernoulli, normal, poisson, uniform};

/// The distribution of deviations from the base delay.
///
/// Unless documented otherwise, the mean is 0, the standard deviation is `jitter`, and the tails are
/// not truncated. netem samples tables that end at 4 sigma, which affects skewed distributions most:
/// its `pareto` has mean -0.033 and standard deviation 0.82, its `paretonormal` -0.025 and 0.83, in
/// units of the configured jitter. Without a table, netem is uniform, contrary to its manual.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// The normal distribution.
    #[default]
    Normal,
    /// Uniform from `-jitter` to `+jitter`, as in netem; the standard deviation is 0.577 of `jitter`.
    Uniform,
    /// Pareto with shape 3, as netem's table: mostly slightly early, occasionally very late.
    Pareto,
    /// One quarter normal and three quarters Pareto, as netem's table.
    ParetoNormal,
    /// Exponential with mean `jitter`; never early.
    Exponential,
    /// Sampled from a table of deviations.
    Table(Arc<Table>),
    /// The Wi-Fi jitter of picoquic's simulator, for comparisons: up to N milliseconds late, with N
    /// Poisson of mean 1; with probability (`jitter` - 1 ms) / 84 ms up to another N times 7.5 ms,
    /// with N Poisson of mean 12. Always independent between packets.
    PicoquicWifi,
}

impl Distribution {
    /// A deviation in nanoseconds, derived from the standard normal value `z`.
    pub(super) fn deviation(&self, z: f64, jitter: f64, rng: &mut Pcg64Mcg) -> f64 {
        match self {
            Self::Normal => jitter * z,
            Self::Uniform => jitter * (1.0 - 2.0 * upper_tail(z)),
            Self::Pareto => jitter * pareto(z),
            Self::ParetoNormal => {
                jitter * (0.25 * normal(rng) + 0.75 * pareto(z)) / 0.625_f64.sqrt()
            }
            Self::Exponential => -jitter * libm::log(upper_tail(z)),
            Self::Table(table) => jitter * table.at(1.0 - upper_tail(z)),
            Self::PicoquicWifi => picoquic_wifi(jitter, rng),
        }
    }
}

/// Probability that a standard normal value exceeds `z`.
fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// Pareto with shape 3, shifted to mean 0 and scaled to standard deviation 1.
fn pareto(z: f64) -> f64 {
    let value = 1.0 / libm::cbrt(upper_tail(z));
    (value - 1.5) / 0.75_f64.sqrt()
}

fn picoquic_wifi(jitter: f64, rng: &mut Pcg64Mcg) -> f64 {
    let mut late = 0.0;
    let slots = poisson(rng, 1.0);
    if slots > 0 {
        late += (f64::from(slots) - uniform(rng)) * 1e6;
    }
    if bernoulli(rng, (jitter - 1e6) / 84e6) {
        let stalls = poisson(rng, 12.0);
        if stalls > 1 {
            late += (f64::from(stalls) - uniform(rng)) * 7.5e6;
        }
    }
    late
}
