//! Goodput.
//!
//! Expected values are those of ns-3.37 for the same setting, unless documented otherwise: 1,472 bytes of UDP payload,
//! best effort, no errors.

use std::time::Duration;

use marline_link::wifi::{
    Contender, Errors, HopConfig, Phy, StationConfig, Width, WifiConfig, mesh_ht20,
};

use super::source::{Source, run};

fn medium(width: Width, index: u8, short: bool) -> WifiConfig {
    WifiConfig::new(Phy::ht(width, index, short), 1)
}

fn ht20() -> WifiConfig {
    medium(Width::Ht20, 7, false)
}

fn ht40() -> WifiConfig {
    medium(Width::Ht40, 15, true)
}

fn limit_acks(mut config: WifiConfig, limit: Option<u32>) -> WifiConfig {
    for station in &mut config.stations {
        *station = StationConfig {
            ack_aggregation: limit,
            ..*station
        };
    }
    config
}

/// Prints `got` and `expected`, and returns the relative error.
fn compare(what: &str, got: f64, expected: f64) -> f64 {
    let error = got / expected - 1.0;
    println!(
        "{what}: {got:.2} Mb/s, expected {expected:.2} ({:+.2} %)",
        100.0 * error
    );
    error
}

#[test]
fn saturated_goodput_is_within_a_percent_of_ns3() {
    let rows = [
        (Width::Ht20, 7, false, [30.75, 45.96, 56.00, 0.0, 59.62]),
        (Width::Ht20, 7, true, [32.38, 49.66, 61.59, 0.0, 66.26]),
        (Width::Ht40, 7, true, [43.02, 79.59, 115.29, 132.93, 135.09]),
        (
            Width::Ht20,
            15,
            true,
            [41.88, 77.02, 111.34, 128.01, 130.18],
        ),
        (
            Width::Ht40,
            15,
            false,
            [48.52, 104.28, 178.30, 226.16, 232.55],
        ),
        (
            Width::Ht40,
            15,
            true,
            [49.50, 108.77, 191.69, 247.97, 255.71],
        ),
    ];
    let mut worst = 0.0_f64;
    for (width, index, short, expected) in rows {
        for (mpdus, expected) in [1, 3, 10, 32, 64].into_iter().zip(expected) {
            if expected == 0.0 {
                continue;
            }
            let config = WifiConfig {
                max_mpdus: mpdus,
                ..medium(width, index, short)
            };
            let got = run(&config, Source::ONE_WAY, Duration::from_secs(2), 1).goodput;
            let what = format!("{width:?} MCS {index}, SGI {short}, up to {mpdus} MPDUs");
            worst = worst.max(compare(&what, got, expected).abs());
        }
    }
    assert!(worst < 0.01, "{worst}");
}

#[test]
fn a_hop_has_the_goodput_of_its_own_modulation() {
    let hop = HopConfig {
        between: [1, 0],
        phy: Phy::ht(Width::Ht40, 3, true),
        errors: Errors {
            mpdu: 0.1,
            ..Errors::default()
        },
        signal: None,
    };
    let one_of_two = WifiConfig {
        hops: vec![hop.clone()],
        ..ht40()
    };
    let alone = WifiConfig {
        errors: hop.errors,
        ..WifiConfig::new(hop.phy, 1)
    };
    let goodput = |config| run(&config, Source::saturated(2), Duration::from_secs(1), 1).goodput;
    assert_eq!(goodput(one_of_two), goodput(alone.clone()));
    assert!(goodput(alone) < 0.25 * goodput(ht40()));
}

#[test]
fn vht80_goodput_is_within_a_percent_of_the_computed_values() {
    let phy = Phy {
        width: Width::Vht80,
        mcs: 9,
        streams: 2,
        short_guard_interval: true,
    };
    let rows = [(1, 54.9), (3, 143.3), (10, 339.9), (32, 568.8), (64, 673.8)];
    for (mpdus, expected) in rows {
        let config = WifiConfig {
            max_mpdus: mpdus,
            max_ampdu_bytes: 1_048_575,
            ..WifiConfig::new(phy, 1)
        };
        let got = run(&config, Source::ONE_WAY, Duration::from_secs(1), 1).goodput;
        let what = format!("VHT80 MCS 9, SGI, up to {mpdus} MPDUs");
        assert!(compare(&what, got, expected).abs() < 0.01);
    }
}

#[test]
fn goodput_with_aggregated_acks_is_within_3_percent_of_ns3() {
    for (config, name, seconds, expected) in [
        (ht20(), "HT20", 12, [52.1, 52.6, 53.9, 54.6, 56.4, 57.5]),
        (
            ht40(),
            "HT40",
            3,
            [208.3, 221.0, 225.4, 227.7, 228.3, 240.8],
        ),
    ] {
        for (every, expected) in [1, 2, 4, 10, 32, 100].into_iter().zip(expected) {
            let got = run(
                &config,
                Source::saturated(every),
                Duration::from_secs(seconds),
                1,
            );
            let error = compare(
                &format!("{name}, an ACK for {every}"),
                got.goodput,
                expected,
            );
            assert!(error.abs() < 0.03);
        }
    }
}

#[test]
fn goodput_without_aggregated_acks_is_within_5_percent_of_ns3() {
    let config = limit_acks(ht40(), Some(1));
    let rows = [(1, 33.9), (2, 59.6), (10, 155.7), (32, 211.3)];
    let goodputs: Vec<f64> = rows
        .into_iter()
        .map(|(every, expected)| {
            let source = Source::windowed(256, every);
            let got = run(&config, source, Duration::from_secs(2), 1).goodput;
            assert!(compare(&format!("an ACK for {every}"), got, expected).abs() < 0.05);
            got
        })
        .collect();
    assert!(goodputs.is_sorted());
    assert!(goodputs[3] > 5.0 * goodputs[0]);
}

fn wired(config: WifiConfig, round_trip: Duration) -> WifiConfig {
    WifiConfig {
        base_delay: round_trip / 2,
        ..config
    }
}

/// The gain of acknowledging every ten packets over every two, for each limit of aggregated acknowledgments.
fn gains_of_fewer_acks(config: &WifiConfig, duration: Duration, expected: [i32; 6]) -> Vec<f64> {
    let limits = [Some(1), Some(2), Some(4), Some(8), Some(16), None];
    let gain = |(limit, expected)| {
        let config = wired(limit_acks(config.clone(), limit), Duration::from_millis(5));
        let goodput = |every| run(&config, Source::windowed(256, every), duration, 1).goodput;
        let (two, ten) = (goodput(2), goodput(10));
        let gain = ten / two - 1.0;
        println!(
            "{limit:?} ACKs a PPDU: {two:.1} -> {ten:.1} Mb/s, {:+.0} %, expected {expected:+} %",
            100.0 * gain
        );
        gain
    };
    limits.into_iter().zip(expected).map(gain).collect()
}

#[test]
fn ack_aggregation_reduces_the_gain_of_fewer_acks_on_a_fast_channel() {
    let expected = [175, 89, 41, 24, 13, 3];
    let gains = gains_of_fewer_acks(&ht40(), Duration::from_millis(1500), expected);
    assert!(gains.is_sorted_by(|before, after| before > after));
    assert!(gains[0] > 1.5 && gains[5] > 0.0);
}

#[test]
fn ack_aggregation_reduces_the_gain_of_fewer_acks_on_a_slow_channel() {
    let expected = [39, 19, 13, 6, 6, 2];
    let gains = gains_of_fewer_acks(&ht20(), Duration::from_secs(20), expected);
    assert!(gains.is_sorted_by(|before, after| before > after));
    assert!(gains[0] > 0.3 && gains[5] > 0.0);
}

#[test]
fn two_saturated_stations_share_the_medium_equally() {
    let mut config = ht40();
    config.contenders = vec![Contender::SATURATED];
    // Two stations with windows of 16 slots collide in one of 18 accesses, and each gets half of the
    // rest.
    let expected = 256.2 / 2.0 * (1.0 - 1.0 / 18.0);
    let got = run(&config, Source::ONE_WAY, Duration::from_secs(8), 1).goodput;
    assert!(compare("with one contender", got, expected).abs() < 0.03);
}

#[test]
fn goodput_of_a_mesh_is_divided_by_its_hops() {
    let goodput = |hops| {
        let config = mesh_ht20(hops, 2);
        let got = run(&config, Source::ONE_WAY, Duration::from_secs(8), 1);
        println!(
            "{hops} hops: {:.1} Mb/s, {} dropped",
            got.goodput, got.dropped
        );
        got.goodput
    };
    let one = goodput(1);
    assert!((goodput(2) * 2.0 / one - 1.0).abs() < 0.1);
    assert!((goodput(3) * 3.0 / one - 1.0).abs() < 0.2);
}

#[test]
fn amsdus_raise_goodput_unless_there_are_bit_errors() {
    let amsdu = |bytes, mpdus, errors| {
        let config = WifiConfig {
            max_amsdu_bytes: bytes,
            max_mpdus: mpdus,
            errors: Errors {
                bit: errors,
                ..Errors::default()
            },
            ..ht20()
        };
        run(&config, Source::ONE_WAY, Duration::from_secs(4), 1).goodput
    };
    // ns-3's own bounds for this setting.
    assert!((51.0..52.5).contains(&amsdu(Some(7935), 1, 0.0)));
    assert!((58.0..59.75).contains(&amsdu(Some(3839), 10, 0.0)));
    // All packets of an A-MSDU fail together.
    assert!(amsdu(None, 64, 2e-5) > amsdu(Some(7935), 1, 2e-5));
}

#[test]
fn rts_cts_pays_off_only_with_many_contenders() {
    let goodput = |rts_bytes, others| {
        let config = WifiConfig {
            rts_bytes,
            contenders: vec![Contender::SATURATED; others],
            ..ht40()
        };
        run(&config, Source::ONE_WAY, Duration::from_secs(4), 1).goodput
    };
    assert!(goodput(Some(0), 0) < goodput(None, 0));
    assert!(goodput(Some(0), 5) > goodput(None, 5));
}
