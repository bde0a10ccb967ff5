//! Statistics over runs. Equal values give bit-identical results on every machine.

mod bootstrap;
mod direction;
mod dispersion;
mod measures;
mod quantile;
mod statistic;
mod student;
mod summary;

pub use bootstrap::{Interval, MIN_SURE, interval, ratio_interval};
pub use direction::is_better_larger;
pub use dispersion::Dispersion;
pub use measures::{ecdf, jain_index, pearson};
pub use quantile::{quantile, sorted};
pub use statistic::Statistic;
pub(crate) use student::{critical, t_beyond};
pub use summary::{Summary, censored_value};

#[cfg(test)]
mod tests;
