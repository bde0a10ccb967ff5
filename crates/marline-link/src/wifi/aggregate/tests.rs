use super::{Limits, Ppdu};
use crate::wifi::{Phy, StationConfig, Width, WifiConfig};

fn medium(width: Width, index: u8, short: bool) -> WifiConfig {
    WifiConfig::new(Phy::ht(width, index, short), 1)
}

/// Fills a PPDU with packets of `packet` bytes, one per MPDU.
fn filled(config: &WifiConfig, station: &StationConfig, packet: u32) -> Ppdu {
    let mut ppdu = Ppdu::new(Limits::new(config, station, config.phy));
    while ppdu.begin(packet) {}
    ppdu
}

#[test]
fn a_ppdu_is_limited_by_size_airtime_and_mpdu_count() {
    let station = StationConfig::DEFAULT;
    for (width, index, short, expected) in [
        (Width::Ht20, 7, false, 28),
        (Width::Ht20, 7, true, 31),
        (Width::Ht40, 7, true, 42),
        (Width::Ht40, 15, true, 42),
    ] {
        let config = medium(width, index, short);
        assert_eq!(filled(&config, &station, 1500).mpdus(), expected);
    }
    let mut config = medium(Width::Ht40, 15, true);
    let ppdu = filled(&config, &station, 64);
    assert_eq!((ppdu.mpdus(), ppdu.bytes()), (64, 63 * 108 + 106));
    config.max_mpdus = 10;
    let ppdu = filled(&config, &station, 1500);
    assert_eq!((ppdu.mpdus(), ppdu.bytes()), (10, 9 * 1544 + 1542));
}

#[test]
fn a_single_mpdu_has_no_delimiter() {
    let config = medium(Width::Ht20, 7, false);
    let mut ppdu = Ppdu::new(Limits::new(&config, &StationConfig::DEFAULT, config.phy));
    assert!(ppdu.begin(1500));
    assert_eq!(ppdu.bytes(), 1538);
}

#[test]
fn a_station_without_aggregation_sends_one_packet_per_ppdu() {
    let station = StationConfig {
        aggregation: false,
        ..StationConfig::DEFAULT
    };
    let config = WifiConfig {
        max_amsdu_bytes: Some(7935),
        ..medium(Width::Ht40, 15, true)
    };
    let mut ppdu = Ppdu::new(Limits::new(&config, &station, config.phy));
    assert!(ppdu.begin(1500));
    assert!(!ppdu.join(1500) && !ppdu.begin(1500));
}

#[test]
fn small_packets_have_a_separate_limit() {
    let station = StationConfig {
        ack_aggregation: Some(2),
        ..StationConfig::DEFAULT
    };
    let config = medium(Width::Ht40, 15, true);
    assert_eq!(filled(&config, &station, 64).mpdus(), 2);
    assert_eq!(filled(&config, &station, 1500).mpdus(), 42);
}

#[test]
fn packets_are_aggregated_into_an_amsdu() {
    let config = WifiConfig {
        max_amsdu_bytes: Some(3839),
        ..medium(Width::Ht40, 15, true)
    };
    let mut ppdu = Ppdu::new(Limits::new(&config, &StationConfig::DEFAULT, config.phy));
    assert!(ppdu.begin(1500));
    assert!(ppdu.join(1500));
    assert!(!ppdu.join(1500));
    assert_eq!((ppdu.mpdus(), ppdu.bytes()), (1, 3076));
    assert!(ppdu.begin(1500));
    assert_eq!(ppdu.bytes(), 3080 + 4 + 1538);
}
