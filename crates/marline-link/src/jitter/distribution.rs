//! How deviations are distributed.

use std::f64::consts::SQRT_2;
use std::sync::Arc;

use rand_pcg::Pcg64Mcg;

use super::Table;
use crate::random::{happens, normal, poisson, unit};

/// How deviations from the base delay are distributed.
///
/// Unless it says otherwise, a law has mean 0 and `jitter` is its standard deviation, and its tails are
/// not cut. netem draws from tables that end at 4 sigma, which takes most from the skewed ones: its
/// `pareto` has mean -0.033 and standard deviation 0.82, its `paretonormal` -0.025 and 0.83, in
/// units of what was asked for. And netem without a table is uniform, whatever its manual says.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Law {
    /// The normal distribution.
    #[default]
    Normal,
    /// From `-jitter` to `+jitter`, all equally likely, as in netem; the standard deviation is
    /// 0.577 of it.
    Uniform,
    /// Of Pareto with a shape of 3, as the table of netem: mostly a little early, at times very late.
    Pareto,
    /// A quarter normal and three quarters Pareto, as the table of netem.
    ParetoNormal,
    /// Only late, by `jitter` on average: an exponential distribution.
    Exponential,
    /// From a table of deviations.
    Table(Arc<Table>),
    /// What picoquic's simulator calls Wi-Fi, for comparisons: late by N milliseconds or less, N of
    /// Poisson with mean 1; and with a chance of (`jitter` - 1 ms) / 84 ms late by another N times 7.5
    /// ms or less, N of Poisson with mean 12. Independent from packet to packet in any case.
    PicoquicWifi,
}

impl Law {
    /// Whether `jitter` scales the law and neighbors can resemble each other.
    pub const fn is_scaled(&self) -> bool {
        !matches!(self, Self::PicoquicWifi)
    }

    /// A deviation in nanoseconds, made from a standard normal number.
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

/// How likely a standard normal number is larger than `z`; never 0.
fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// Of Pareto with shape 3, moved to mean 0 and scaled to standard deviation 1.
fn pareto(z: f64) -> f64 {
    let value = 1.0 / libm::cbrt(upper_tail(z));
    (value - 1.5) / 0.75_f64.sqrt()
}

fn picoquic_wifi(jitter: f64, rng: &mut Pcg64Mcg) -> f64 {
    let mut late = 0.0;
    let slots = poisson(rng, 1.0);
    if slots > 0 {
        late += (f64::from(slots) - unit(rng)) * 1e6;
    }
    if happens(rng, (jitter - 1e6) / 84e6) {
        let stalls = poisson(rng, 12.0);
        if stalls > 1 {
            late += (f64::from(stalls) - unit(rng)) * 7.5e6;
        }
    }
    late
}
