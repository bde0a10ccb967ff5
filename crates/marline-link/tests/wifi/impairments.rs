//! Errors, scans, drops and invalid configurations.

use std::time::Duration;

use marline_link::wifi::{Errors, Phy, Scan, Width, WifiConfig, WifiMedium};
use marline_link::{DropReason, Medium, Packet, Seed, Time};

use super::source::{Source, run};

fn ht40() -> WifiConfig {
    WifiConfig::new(Phy::ht(Width::Ht40, 15, true), 1)
}

fn with_errors(mpdu: f64) -> WifiConfig {
    WifiConfig {
        errors: Errors {
            mpdu,
            ..Errors::default()
        },
        ..ht40()
    }
}

#[test]
fn retransmissions_hide_errors_at_the_cost_of_airtime() {
    let clean = run(&ht40(), Source::ONE_WAY, Duration::from_secs(2), 1);
    let noisy = run(
        &with_errors(0.1),
        Source::ONE_WAY,
        Duration::from_secs(2),
        1,
    );
    println!(
        "{:.1} Mb/s without errors, {:.1} with 10 %",
        clean.goodput, noisy.goodput
    );
    // 10 % of the airtime and more: early failures block the window, which shortens the next A-MPDU.
    assert!((0.85..0.9).contains(&(noisy.goodput / clean.goodput)));
    assert_eq!((noisy.dropped, noisy.reordered), (0, 0));
}

#[test]
fn packets_are_lost_after_eight_failed_transmissions() {
    let noisy = run(
        &with_errors(0.5),
        Source::ONE_WAY,
        Duration::from_secs(3),
        1,
    );
    let packets = noisy.goodput * 1e6 / 8.0 / 1472.0 * 2.9;
    let lost = noisy.dropped as f64 / packets;
    println!("{lost:.5} lost, expected {:.5}", 0.5_f64 * 0.5 / 64.0);
    assert!((lost * 256.0 - 1.0).abs() < 0.25);
}

#[test]
fn receivers_without_reordering_deliver_out_of_order() {
    let config = WifiConfig {
        reorder: None,
        ..with_errors(0.1)
    };
    let noisy = run(&config, Source::ONE_WAY, Duration::from_secs(1), 1);
    assert!(noisy.reordered > 0);
}

/// Delays of packets that station 0 sends every 10 ms for 1 s; without waiting about 200 us.
fn arrivals(config: &WifiConfig) -> Vec<Duration> {
    let mut medium = WifiMedium::new(config, Seed::new(1)).unwrap();
    let mut arrivals = Vec::new();
    for number in 0..100_u64 {
        let now = Time::from_nanos(number * 10_000_000);
        medium.push(now, 0, 1, Packet::new(1500, now));
    }
    while let Some(due) = medium.next_event() {
        while let Some(carried) = medium.pop(due) {
            assert_eq!(carried.exit.dropped, None);
            arrivals.push(carried.exit.at.since(carried.exit.packet.body));
        }
    }
    arrivals
}

#[test]
fn packets_wait_while_a_station_scans() {
    let scan = Scan {
        station: 1,
        first: Duration::from_millis(305),
        every: Duration::ZERO,
        length: Duration::from_millis(200),
    };
    for station in [0, 1] {
        let config = WifiConfig {
            scans: vec![Scan { station, ..scan }],
            ..ht40()
        };
        let delays = arrivals(&config);
        assert_eq!(delays.len(), 100);
        let (waited, others): (Vec<_>, Vec<_>) = delays
            .into_iter()
            .partition(|delay| *delay > Duration::from_millis(1));
        assert_eq!(waited.len(), 20);
        let longest = waited.into_iter().max().unwrap();
        assert!(longest > Duration::from_millis(195) && longest < Duration::from_millis(197));
        assert!(
            others
                .iter()
                .all(|delay| *delay < Duration::from_micros(200))
        );
    }
}

#[test]
fn a_full_queue_drops_arriving_packets() {
    let mut config = ht40();
    config.stations[0].queue_bytes = 15_000;
    let mut medium = WifiMedium::new(&config, Seed::new(1)).unwrap();
    for _ in 0..12 {
        medium.push(Time::ZERO, 0, 1, Packet::new(1500, ()));
    }
    assert_eq!(medium.queued_bytes(0), 15_000);
    let dropped: Vec<_> = std::iter::from_fn(|| medium.pop(Time::ZERO)).collect();
    assert_eq!(dropped.len(), 2);
    assert!(
        dropped
            .iter()
            .all(|carried| carried.exit.dropped == Some(DropReason::QueueFull))
    );
    medium.push(Time::ZERO, 1, 0, Packet::new(70_000, ()));
    let dropped = medium.pop(Time::ZERO).unwrap();
    assert_eq!(dropped.exit.dropped, Some(DropReason::TooLarge));
}

#[test]
fn invalid_configurations_are_rejected() {
    let refused = |change: fn(&mut WifiConfig)| {
        let mut config = ht40();
        change(&mut config);
        WifiMedium::<()>::new(&config, Seed::new(1))
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(refused(|_| {}), None);
    assert_eq!(
        refused(|config| config.max_mpdus = 65),
        Some("`max_mpdus` is out of range".to_owned())
    );
    assert!(refused(|config| config.phy.mcs = 8).is_some());
    assert!(refused(|config| config.max_ppdu = Duration::ZERO).is_some());
    assert!(refused(|config| config.errors.mpdu = f64::NAN).is_some());
    assert!(refused(|config| config.stations.truncate(1)).is_some());
}
