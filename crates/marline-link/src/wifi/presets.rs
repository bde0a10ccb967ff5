//! Media for experiments.

use std::time::Duration;

use super::config::{StationConfig, Topology, WifiConfig};
use super::contender::Contender;
use super::phy::{Phy, Width};

/// An access point and a station on a busy channel: 190 Mb/s with an acknowledgment for every two to
/// four packets, and pings of 10.5 ms with a standard deviation of 6.1 ms.
///
/// 802.11n on 40 MHz with two streams; other traffic occupies 15.5 % of the time, 9.6 ms at a time.
/// Acknowledgments are aggregated without limit.
pub fn wifi_n_190() -> WifiConfig {
    WifiConfig {
        contenders: vec![Contender::OnOff {
            busy: Duration::from_micros(9600),
            duty: 0.155,
        }],
        base_delay: Duration::from_micros(4200),
        ..WifiConfig::new(Phy::ht(Width::Ht40, 15, true), 1)
    }
}

/// A chain of nodes with `hops` hops, one stream on 20 MHz at 65 Mb/s, which aggregate at most
/// `ack_aggregation` acknowledgments in an A-MPDU; 1 or 2 match field measurements.
pub fn mesh_ht20(hops: usize, ack_aggregation: u32) -> WifiConfig {
    mesh(Phy::ht(Width::Ht20, 7, false), hops, ack_aggregation)
}

/// A chain of nodes with `hops` hops, two streams on 40 MHz at 300 Mb/s, which aggregate at most
/// `ack_aggregation` acknowledgments in an A-MPDU; 8 matches field measurements.
pub fn mesh_ht40(hops: usize, ack_aggregation: u32) -> WifiConfig {
    mesh(Phy::ht(Width::Ht40, 15, true), hops, ack_aggregation)
}

fn mesh(phy: Phy, hops: usize, ack_aggregation: u32) -> WifiConfig {
    let mut config = WifiConfig {
        topology: Topology::Chain,
        ..WifiConfig::new(phy, hops)
    };
    config.stations.fill(StationConfig {
        ack_aggregation: Some(ack_aggregation),
        ..StationConfig::DEFAULT
    });
    config
}
