//! The configuration of a medium.

use std::time::Duration;

use super::backoff::Edca;
use super::contender::Contender;
use super::errors::Errors;
use super::phy::Phy;
use super::rate_control::RateControl;
use super::scan::Scan;
use super::signal::Signal;
use crate::Station;

/// An 802.11n or 802.11ac channel and the stations on it.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiConfig {
    /// Modulation, unless [`hops`](Self::hops) has another.
    pub phy: Phy,
    /// Maximum duration of a PPDU: 5,484 us by the standard, about 4 ms in many drivers.
    pub max_ppdu: Duration,
    /// Maximum size of an A-MPDU in bytes: 65,535 in 802.11n, up to 1,048,575 in 802.11ac.
    pub max_ampdu_bytes: u32,
    /// Maximum number of MPDUs in an A-MPDU, 1 to 64.
    pub max_mpdus: u32,
    /// Maximum size of an A-MSDU in bytes, 3,839 or 7,935; `None` disables A-MSDUs.
    pub max_amsdu_bytes: Option<u32>,
    /// Maximum number of retransmissions of an MPDU.
    pub retry_limit: u32,
    /// Minimum size in bytes of A-MPDUs protected by RTS and CTS.
    pub rts_bytes: Option<u32>,
    /// Transmission errors, unless [`hops`](Self::hops) has others.
    pub errors: Errors,
    /// The signal between stations, unless [`hops`](Self::hops) has another; `None` if only `errors` determine errors.
    pub signal: Option<Signal>,
    /// How stations choose their modulation.
    pub rate_control: RateControl,
    /// Pairs of stations with their own modulation and errors, each pair once.
    pub hops: Vec<HopConfig>,
    /// Time for which a receiver holds packets behind a missing one; `None` disables reordering.
    pub reorder: Option<Duration>,
    /// Maximum size in bytes, including the IP header, of a small packet such as an acknowledgment.
    pub small_bytes: u32,
    /// Forwarding between stations.
    pub topology: Topology,
    /// The stations, at least two.
    pub stations: Vec<StationConfig>,
    /// Other transmitters on the channel.
    pub contenders: Vec<Contender>,
    /// Scans of stations for other channels.
    pub scans: Vec<Scan>,
    /// Delay added to every packet that arrives at its destination, for the path beyond the medium.
    pub base_delay: Duration,
}

/// The configuration of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// EDCA parameters.
    pub edca: Edca,
    /// Whether the station aggregates. Otherwise it sends neither A-MPDUs nor A-MSDUs.
    pub aggregation: bool,
    /// Maximum number of small packets in a PPDU; `None` for no separate limit.
    ///
    /// This determines the cost of frequent acknowledgments, more than any other setting.
    pub ack_aggregation: Option<u32>,
    /// Queue limit in bytes, over all next hops.
    pub queue_bytes: u64,
}

impl StationConfig {
    /// Best effort, unlimited aggregation, and a queue of 1 MB.
    pub const DEFAULT: Self = Self {
        edca: Edca::BEST_EFFORT,
        aggregation: true,
        ack_aggregation: None,
        queue_bytes: 1_000_000,
    };
}

impl Default for StationConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The modulation and errors between two stations, in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct HopConfig {
    /// The stations.
    pub between: [Station; 2],
    /// Modulation.
    pub phy: Phy,
    /// Transmission errors.
    pub errors: Errors,
    /// The signal; see [`WifiConfig::signal`].
    pub signal: Option<Signal>,
}

impl HopConfig {
    /// Whether it applies between `a` and `b`.
    fn joins(&self, a: Station, b: Station) -> bool {
        self.between == [a, b] || self.between == [b, a]
    }
}

/// The rule by which packets are forwarded. All stations are in range of each other in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topology {
    /// Directly to its destination.
    Direct,
    /// To the access point, station 0, which forwards it.
    AccessPoint,
    /// To the neighbor in a row of stations, which forwards it: a mesh with one hop per pair of neighbors.
    Chain,
}

impl Topology {
    /// The next hop from `at` to destination `to`.
    pub(super) const fn next_hop(self, at: Station, to: Station) -> Station {
        match self {
            Self::AccessPoint if at != 0 => 0,
            Self::Direct | Self::AccessPoint => to,
            Self::Chain if at < to => at + 1,
            Self::Chain => at - 1,
        }
    }
}

impl WifiConfig {
    /// An access point, station 0, and `stations` further ones on an otherwise idle channel, with full aggregation.
    pub fn new(phy: Phy, stations: usize) -> Self {
        Self {
            phy,
            max_ppdu: Duration::from_micros(5484),
            max_ampdu_bytes: 65_535,
            max_mpdus: 64,
            max_amsdu_bytes: None,
            retry_limit: 7,
            rts_bytes: None,
            errors: Errors::default(),
            signal: None,
            rate_control: RateControl::Fixed,
            hops: Vec::new(),
            reorder: Some(Duration::from_millis(100)),
            small_bytes: 200,
            topology: Topology::AccessPoint,
            stations: vec![StationConfig::DEFAULT; stations + 1],
            contenders: Vec::new(),
            scans: Vec::new(),
            base_delay: Duration::ZERO,
        }
    }

    /// The modulation and errors between `from` and `to`.
    pub(super) fn hop(&self, from: Station, to: Station) -> HopConfig {
        let own = self.hops.iter().find(|hop| hop.joins(from, to));
        own.cloned().unwrap_or_else(|| HopConfig {
            between: [from, to],
            phy: self.phy,
            errors: self.errors,
            signal: self.signal.clone(),
        })
    }

    /// Checks that all settings are in range.
    ///
    /// # Errors
    ///
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), WifiError> {
        let hops = self.hops.iter();
        for phy in std::iter::once(self.phy).chain(hops.map(|hop| hop.phy)) {
            if !phy.is_valid() {
                return Err(WifiError::Modulation(phy));
            }
            if phy.bytes_within(self.max_ppdu) < 100 {
                return Err(WifiError::Range("max_ppdu"));
            }
        }
        let within = |name, holds: bool| {
            if holds {
                Ok(())
            } else {
                Err(WifiError::Range(name))
            }
        };
        within("stations", self.stations.len() >= 2)?;
        within("max_mpdus", (1..=64).contains(&self.max_mpdus))?;
        within(
            "max_ampdu_bytes",
            (100..=1_048_575).contains(&self.max_ampdu_bytes),
        )?;
        // A smaller PPDU could split an A-MSDU.
        let is_fixed = self.rate_control == RateControl::Fixed;
        within(
            "max_amsdu_bytes",
            is_fixed || self.max_amsdu_bytes.is_none(),
        )?;
        within("retry_limit", self.retry_limit <= 255)?;
        let hops = self.hops.iter();
        for errors in std::iter::once(self.errors).chain(hops.map(|hop| hop.errors)) {
            for (name, p) in errors.probabilities() {
                within(name, (0.0..=1.0).contains(&p))?;
            }
        }
        for (index, hop) in self.hops.iter().enumerate() {
            let [a, b] = hop.between;
            let stations = self.stations.len();
            let is_again = self.hops[..index].iter().any(|other| other.joins(a, b));
            within("hops", a < stations && b < stations && a != b && !is_again)?;
        }
        let edcas = self
            .stations
            .iter()
            .map(|station| station.edca)
            .chain(self.contenders.iter().filter_map(Contender::edca));
        for edca in edcas {
            within(
                "edca",
                edca.aifsn >= 1
                    && edca.aifsn <= 255
                    && edca.cw_min <= edca.cw_max
                    && edca.cw_max <= 32_767,
            )?;
        }
        for contender in &self.contenders {
            within("contenders", contender.is_valid())?;
        }
        for scan in &self.scans {
            within(
                "scans",
                scan.station < self.stations.len() && scan.is_valid(),
            )?;
        }
        for station in &self.stations {
            within("ack_aggregation", station.ack_aggregation != Some(0))?;
        }
        Ok(())
    }
}

/// An invalid configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WifiError {
    /// The standard does not define the modulation.
    #[error("undefined modulation: {0:?}")]
    Modulation(Phy),
    /// A setting is out of range.
    #[error("`{0}` is out of range")]
    Range(&'static str),
}
