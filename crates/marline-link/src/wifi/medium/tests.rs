use std::time::Duration;

use super::WifiMedium;
use crate::conformance::{arrivals, check_medium};
use crate::wifi::{Contender, Errors, Scan, WifiConfig, mesh_ht20, wifi_n_190};
use crate::{Medium, Seed};

fn check(config: &WifiConfig) {
    let make = || Box::new(WifiMedium::new(config, Seed::new(5)).unwrap()) as Box<dyn Medium<u64>>;
    for seed in 0..4 {
        check_medium(make, &arrivals(seed, 400)).unwrap();
    }
}

#[test]
fn a_busy_channel_satisfies_the_medium_contract() {
    check(&wifi_n_190());
}

#[test]
fn a_lossy_mesh_with_contenders_satisfies_the_medium_contract() {
    check(&WifiConfig {
        errors: Errors {
            mpdu: 0.2,
            ..Errors::default()
        },
        contenders: vec![Contender::SATURATED],
        scans: vec![Scan {
            station: 1,
            first: Duration::from_millis(10),
            every: Duration::from_secs(1),
            length: Duration::from_millis(150),
        }],
        ..mesh_ht20(3, 2)
    });
}
