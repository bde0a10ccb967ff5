//! Which scheduler a connection gets.

use std::fmt;

use super::{Ecf, Hbes, Lrf, PathScheduler, Redundant, Rr, SaEcf, WaterFilling};
use super::{ecf, hbes, lrf, redundant, rr, sa_ecf, water_filling};

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

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rr => rr::ENTRY.name,
            Self::Lrf => lrf::ENTRY.name,
            Self::Ecf => ecf::ENTRY.name,
            Self::SaEcf => sa_ecf::ENTRY.name,
            Self::Hbes => hbes::ENTRY.name,
            Self::Redundant => redundant::ENTRY.name,
            Self::WaterFilling => water_filling::ENTRY.name,
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
