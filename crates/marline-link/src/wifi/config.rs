//! What a medium is made of.

use std::time::Duration;

use super::backoff::Edca;
use super::contender::Contender;
use super::errors::Errors;
use super::phy::Phy;
use super::scan::Scan;
use crate::Station;

/// A channel of 802.11n or 802.11ac and everybody on it.
#[derive(Clone, Debug, PartialEq)]
pub struct WifiConfig {
    /// How all stations modulate.
    pub phy: Phy,
    /// The longest PPDU: 5,484 us by the standard, about 4 ms in many drivers.
    pub max_ppdu: Duration,
    /// Bytes of the largest A-MPDU: 65,535 in 802.11n, up to 1,048,575 in 802.11ac.
    pub max_ampdu_bytes: u32,
    /// MPDUs of the largest A-MPDU, 1 to 64.
    pub max_mpdus: u32,
    /// Bytes of the largest A-MSDU, 3,839 or 7,935, for those who make any.
    pub max_amsdu_bytes: Option<u32>,
    /// How often an MPDU is sent again before it is lost.
    pub retry_limit: u32,
    /// Reserve the medium, by RTS and CTS, for A-MPDUs of at least this many bytes.
    pub rts_bytes: Option<u32>,
    /// What noise destroys.
    pub errors: Errors,
    /// How long a receiver holds packets back for one that is missing; `None` if it passes them on as they come.
    pub reorder: Option<Duration>,
    /// Packets of at most this many bytes, IP header included, are small, as acknowledgments are.
    pub small_bytes: u32,
    /// The way from station to station.
    pub topology: Topology,
    /// Who sends and receives, at least two.
    pub stations: Vec<StationConfig>,
    /// Who else is on the air.
    pub contenders: Vec<Contender>,
    /// When stations look for other channels.
    pub scans: Vec<Scan>,
    /// Added to every packet that arrives at its destination: the way beyond the medium.
    pub base_delay: Duration,
}

/// How a station sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// How eagerly it contends.
    pub edca: Edca,
    /// Whether it joins MPDUs to A-MPDUs; if not, nor does it join packets to A-MSDUs.
    pub aggregation: bool,
    /// Packets that are small in one PPDU; `None` for no limit of their own.
    ///
    /// No switch matters more: it decides what it costs to acknowledge often.
    pub ack_aggregation: Option<u32>,
    /// Bytes of its queue, for all next hops together.
    pub queue_bytes: u64,
}

impl StationConfig {
    /// Best effort; joins whatever it can; a queue of 1 MB.
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

/// Whom a station hands a packet to. All stations hear each other in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topology {
    /// To its destination.
    Direct,
    /// To the access point, station 0, which passes it on.
    AccessPoint,
    /// To its neighbor in the row of stations, which passes it on: a mesh of as many hops as there are pairs of
    /// neighbors.
    Chain,
}

impl Topology {
    /// The station after `at` on the way to `to`.
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
    /// An access point, station 0, and `stations` more, on a quiet channel; best effort, everything aggregated.
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
            reorder: Some(Duration::from_millis(100)),
            small_bytes: 200,
            topology: Topology::AccessPoint,
            stations: vec![StationConfig::DEFAULT; stations + 1],
            contenders: Vec::new(),
            scans: Vec::new(),
            base_delay: Duration::ZERO,
        }
    }

    /// Whether such a medium can be.
    ///
    /// # Errors
    ///
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), WifiError> {
        if !self.phy.is_valid() {
            return Err(WifiError::Modulation(self.phy));
        }
        if self.phy.bytes_within(self.max_ppdu) < 100 {
            return Err(WifiError::Range("max_ppdu"));
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
        within("retry_limit", self.retry_limit <= 255)?;
        for (name, p) in self.errors.probabilities() {
            within(name, (0.0..=1.0).contains(&p))?;
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

/// A medium that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WifiError {
    /// The standard has no such modulation.
    #[error("no such modulation: {0:?}")]
    Modulation(Phy),
    /// A setting is out of range.
    #[error("`{0}` is out of range")]
    Range(&'static str),
}
