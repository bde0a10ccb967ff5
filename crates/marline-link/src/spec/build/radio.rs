//! The radio at the client's end.

use crate::lte::{Direction, Lte};
use crate::spec::{LteSpec, PhyName, Problem, SpecError, WifiSpec};
use crate::station_pair::StationPair;
use crate::wifi::{Contender, Phy, Scan, Topology, Width, WifiConfig, WifiMedium};
use crate::{Duplex, Medium, Seed};

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
    pub(super) fn build<B: Send + 'static>(
        &self,
        seed: Seed,
    ) -> Result<Box<dyn Medium<B>>, SpecError> {
        let config = self.config();
        let ends = [config.stations.len() - 1, 0];
        let medium = WifiMedium::new(&config, seed).map_err(|error| {
            let reason = error.to_string();
            Problem::Model { reason }.at("model")
        })?;
        Ok(Box::new(StationPair::new(medium, ends)))
    }

    /// The configuration of the medium. The client is the last station; station 0 is at the wire.
    pub fn config(&self) -> WifiConfig {
        let phy = match self.phy {
            PhyName::Ht20 => Phy::ht(Width::Ht20, self.mcs, self.short_guard),
            PhyName::Ht40 => Phy::ht(Width::Ht40, self.mcs, self.short_guard),
            PhyName::Vht80 => Phy {
                width: Width::Vht80,
                mcs: self.mcs,
                streams: 2,
                short_guard_interval: self.short_guard,
            },
        };
        let mut config = WifiConfig::new(phy, self.hops as usize);
        if self.phy == PhyName::Vht80 {
            config.max_ampdu_bytes = 1_048_575;
        }
        let client = config.stations.len() - 1;
        for (index, station) in config.stations.iter_mut().enumerate() {
            station.aggregation = self.aggregation;
            station.queue_bytes = self.queue;
            // All nodes of a mesh have the limit; an access point has none.
            if index == client || self.hops > 1 {
                station.ack_aggregation = self
                    .acks
                    .map(|acks| u32::try_from(acks).unwrap_or(u32::MAX));
            }
        }
        if self.hops > 1 {
            config.topology = Topology::Chain;
        }
        config.base_delay = self.delay;
        config.errors.mpdu = self.error.as_f64();
        if !self.reorder {
            config.reorder = None;
        }
        if !self.busy.is_none() {
            config.contenders.push(Contender::OnOff {
                busy: self.busy_time,
                duty: self.busy.as_f64(),
            });
        }
        config.scans.extend(self.scan.map(|scan| Scan {
            station: client,
            first: scan.every,
            every: scan.every,
            length: scan.length,
        }));
        config
    }
}
