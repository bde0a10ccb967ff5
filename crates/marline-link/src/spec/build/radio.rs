//! The radio at the client's end.

use std::time::Duration;

use crate::lte::{Direction, Lte};
use crate::spec::channel::ChannelLink;
use crate::spec::{ChannelSpec, LinkSpec, LteSpec, PhyName, SpecError, WifiSpec};
use crate::station_pair::StationPair;
use crate::wifi::{
    Contender, Errors, HopConfig, Phy, Scan, Signal, StationConfig, Topology, Width, WifiConfig,
    WifiMedium,
};
use crate::{Duplex, Medium, Seed, Station};

/// The buffer at each end of a cable: that of a switch, more than an aggregate of the radio.
const CABLE_BUFFER: &str = "1MB";

impl LteSpec {
    pub(super) fn build<B: Send + 'static>(&self, seed: Seed) -> Box<dyn Medium<B>> {
        let link =
            |direction| Box::new(Lte::new(&self.config(direction), direction, seed)) as Box<_>;
        Box::new(Duplex::new(
            link(Direction::Uplink),
            link(Direction::Downlink),
        ))
    }
}

impl WifiSpec {
    /// The media, starting at the client: a cable, if any, and one channel, or one for each hop.
    pub(super) fn build<B: Clone + Send + 'static>(
        &self,
        seed: Seed,
    ) -> Result<Vec<Box<dyn Medium<B>>>, SpecError> {
        let mut media = Vec::<Box<dyn Medium<B>>>::new();
        if let Some(rate) = self.cable {
            let cable =
                LinkSpec::from_pairs([("rate", &*format!("{rate}bps")), ("buffer", CABLE_BUFFER)])?;
            media.extend(cable.build(seed.of("cable"))?);
        }
        let pair = |config: WifiConfig, seed| {
            let ends = [config.stations.len() - 1, 0];
            let medium = medium(&config, seed)?;
            Ok(Box::new(StationPair::new(medium, ends)) as Box<_>)
        };
        if self.shared {
            media.push(pair(self.config(), seed)?);
            return Ok(media);
        }
        for hop in 0..self.hops {
            media.push(pair(self.config_of(hop), seed.nth(hop))?);
        }
        Ok(media)
    }

    /// The configuration of the channel of hop `hop`, from 0 at the client, if each has its own. The delay is added
    /// once.
    fn config_of(&self, hop: u64) -> WifiConfig {
        let one = Self {
            hops: 1,
            delay: match hop {
                0 => self.delay,
                _ => Duration::ZERO,
            },
            scan: self.scan.filter(|_| hop == 0),
            ..self.clone()
        };
        let mut config = one.config();
        if self.hops > 1 {
            config.stations.fill(self.station(true));
        }
        config
    }

    /// The configuration of the medium. The client is the last station; station 0 is at the wired end.
    pub fn config(&self) -> WifiConfig {
        let mut config = self.channel(self.hops as usize);
        let client = config.stations.len() - 1;
        for (index, station) in config.stations.iter_mut().enumerate() {
            // All nodes of a mesh have the limit; an access point has none.
            *station = self.station(index == client || self.hops > 1);
        }
        if self.hops > 1 {
            config.topology = Topology::Chain;
        }
        config.scans.extend(self.scan_of(client));
        config
    }

    /// The modulation.
    pub(crate) fn phy(&self) -> Phy {
        match self.phy {
            PhyName::Ht20 => Phy::ht(Width::Ht20, self.mcs, self.short_guard),
            PhyName::Ht40 => Phy::ht(Width::Ht40, self.mcs, self.short_guard),
            PhyName::Vht80 => Phy {
                width: Width::Vht80,
                mcs: self.mcs,
                streams: 2,
                short_guard_interval: self.short_guard,
            },
        }
    }

    /// The settings that all `stations` share, and those of station 0.
    fn channel(&self, stations: usize) -> WifiConfig {
        let mut config = WifiConfig::new(self.phy(), stations);
        if self.phy == PhyName::Vht80 {
            config.max_ampdu_bytes = 1_048_575;
        }
        config.base_delay = self.delay;
        config.errors = self.errors();
        config.signal = self.signal();
        config.rate_control = self.rate_control;
        if !self.reorder {
            config.reorder = None;
        }
        if !self.busy.is_none() {
            config.contenders.push(Contender::OnOff {
                busy: self.busy_time,
                duty: self.busy.as_f64(),
            });
        }
        let saturated = (0..self.contenders).map(|_| Contender::SATURATED);
        config.contenders.extend(saturated);
        config
    }

    /// The signal, if the distance is known.
    pub(crate) fn signal(&self) -> Option<Signal> {
        let path = self.distance.as_ref()?.waypoints().to_vec();
        Some(Signal::new(path, self.power as f64, self.breakpoint as f64))
    }

    fn errors(&self) -> Errors {
        Errors {
            mpdu: self.error.as_f64(),
            ..Errors::default()
        }
    }

    /// A station; `limits_acks` if the limit of acknowledgments applies to it.
    fn station(&self, limits_acks: bool) -> StationConfig {
        let acks = self.acks.filter(|_| limits_acks);
        StationConfig {
            aggregation: self.aggregation,
            ack_aggregation: acks.map(|acks| u32::try_from(acks).unwrap_or(u32::MAX)),
            queue_bytes: self.queue,
            ..StationConfig::DEFAULT
        }
    }

    fn scan_of(&self, station: Station) -> Option<Scan> {
        self.scan.map(|scan| Scan {
            station,
            first: scan.every,
            every: scan.every,
            length: scan.length,
        })
    }
}

impl ChannelSpec {
    /// Builds the channel. Equal seeds give equal channels.
    ///
    /// # Errors
    ///
    /// It has fewer than two stations, a duplicate link, or a link to an unknown station.
    pub fn build<B: Send + 'static>(&self, seed: Seed) -> Result<Box<dyn Medium<B>>, SpecError> {
        Ok(Box::new(medium(&self.config(), seed)?))
    }

    /// The configuration of the medium.
    pub fn config(&self) -> WifiConfig {
        let mut config = self.wifi.channel(1);
        config.topology = Topology::Direct;
        config.stations = self.stations.iter().map(|one| one.station(true)).collect();
        let scans = self.stations.iter().enumerate();
        config.scans = scans
            .filter_map(|(station, one)| one.scan_of(station))
            .collect();
        let hop = |link: &ChannelLink| HopConfig {
            between: link.between,
            phy: link.wifi.phy(),
            errors: link.wifi.errors(),
            signal: link.wifi.signal(),
        };
        config.hops = self.links.iter().map(hop).collect();
        config
    }
}

fn medium<B: Send>(config: &WifiConfig, seed: Seed) -> Result<WifiMedium<B>, SpecError> {
    WifiMedium::new(config, seed).map_err(|error| SpecError::new("model", error))
}
