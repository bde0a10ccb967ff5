//! Which scheduler a connection gets.

use std::fmt;
use std::str::FromStr;

use super::{Ecf, Hbes, Lrf, PathScheduler, Redundant, Rr, SaEcf, WaterFilling};

/// The path schedulers that come with this crate, with their default switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathAlgorithm {
    /// [`Rr`].
    Rr,
    /// [`Lrf`].
    Lrf,
    /// [`Ecf`].
    Ecf,
    /// [`SaEcf`].
    SaEcf,
    /// [`Hbes`].
    Hbes,
    /// [`Redundant`].
    Redundant,
    /// [`WaterFilling`].
    #[default]
    WaterFilling,
}

impl PathAlgorithm {
    /// Every scheduler.
    pub const ALL: [Self; 7] = [
        Self::Rr,
        Self::Lrf,
        Self::Ecf,
        Self::SaEcf,
        Self::Hbes,
        Self::Redundant,
        Self::WaterFilling,
    ];

    /// The name that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rr => "rr",
            Self::Lrf => "lrf",
            Self::Ecf => "ecf",
            Self::SaEcf => "sa_ecf",
            Self::Hbes => "hbes",
            Self::Redundant => "redundant",
            Self::WaterFilling => "water_filling",
        }
    }

    /// A new scheduler.
    pub fn build(self) -> Box<dyn PathScheduler> {
        match self {
            Self::Rr => Box::new(Rr::default()),
            Self::Lrf => Box::new(Lrf),
            Self::Ecf => Box::new(Ecf::default()),
            Self::SaEcf => Box::new(SaEcf::default()),
            Self::Hbes => Box::new(Hbes::default()),
            Self::Redundant => Box::new(Redundant),
            Self::WaterFilling => Box::new(WaterFilling),
        }
    }
}

impl fmt::Display for PathAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PathAlgorithm {
    type Err = UnknownPathAlgorithm;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| UnknownPathAlgorithm(name.to_owned()))
    }
}

/// No path scheduler has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown path scheduler `{0}`: use rr, lrf, ecf, sa_ecf, hbes, redundant or water_filling")]
pub struct UnknownPathAlgorithm(pub String);
