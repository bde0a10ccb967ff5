use std::time::Duration;

use super::*;
use crate::wifi::{Waypoint, Width};

const PHY: Phy = Phy::ht(Width::Ht20, 7, false);

fn standing_at(meters: f64) -> Signal {
    let here = Waypoint {
        at: Duration::ZERO,
        meters,
    };
    Signal::new(vec![here], 15.0, 10.0)
}

/// The modulations of transmissions every 5 ms, of 20 MPDUs each.
fn modulations(control: RateControl, signal: Signal, transmissions: u64) -> Vec<u8> {
    let mut adaptation = Adaptation::new(control, PHY, Some(signal), Seed::new(1)).unwrap();
    let mut rng = Seed::new(2).rng();
    let send = |index: u64| {
        let chosen = adaptation.choose(index * 5_000_000);
        let passes = (1.0 - chosen.bit_errors.unwrap()).powi(8 * 1538);
        let received = (0..20).filter(|_| rng.random::<f64>() < passes).count();
        adaptation.observe(20, received as u32);
        chosen.phy.mcs
    };
    (0..transmissions).map(send).collect()
}

fn share_of(mcs: u8, all: &[u8]) -> f64 {
    all.iter().filter(|one| **one == mcs).count() as f64 / all.len() as f64
}

#[test]
fn the_ideal_choice_follows_the_sensitivities_of_the_standard() {
    // SNR of 39.2, 25.2, 18.1, 12.7 and 8.6 dB with 15 dBm.
    for (meters, mcs) in [(10.0, 7), (25.1, 5), (40.0, 3), (57.2, 1), (75.0, 0)] {
        let found = modulations(RateControl::Ideal, standing_at(meters), 10);
        assert_eq!(found, [mcs; 10], "{meters} m");
    }
}

#[test]
fn minstrel_finds_what_is_ideal_and_keeps_trying_others() {
    for (meters, mcs) in [(10.0, 7), (25.1, 5), (40.0, 3), (57.2, 1)] {
        let found = modulations(RateControl::Minstrel, standing_at(meters), 2000);
        let share = share_of(mcs, &found[400..]);
        assert!(share > 0.7, "{meters} m: {share}");
        assert!(share < 0.96, "{meters} m: {share}");
    }
}

#[test]
fn minstrel_follows_a_station_that_walks_away() {
    let walk = [(0, 10.0), (2, 10.0), (6, 57.2)].map(|(at, meters)| Waypoint {
        at: Duration::from_secs(at),
        meters,
    });
    let found = modulations(
        RateControl::Minstrel,
        Signal::new(walk.to_vec(), 15.0, 10.0),
        2400,
    );
    assert!(share_of(7, &found[100..400]) > 0.7);
    assert!(share_of(1, &found[1400..]) > 0.6);
}

#[test]
fn bit_errors_are_ten_percent_of_the_standards_frames_at_the_sensitivity() {
    for phy in PHY.alternatives() {
        let fails = |snr: f64| 1.0 - (1.0 - phy.bit_error_rate(snr)).powi(8 * 4096);
        assert!((fails(phy.least_snr_db()) - 0.1).abs() < 1e-6);
        assert!(fails(phy.least_snr_db() - 3.0) > 0.9999);
        assert!(fails(phy.least_snr_db() + 2.0) < 0.0011);
    }
}
