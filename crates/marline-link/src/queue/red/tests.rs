use proptest::prelude::*;

use super::*;
use crate::Rate;
use crate::testing::{arrivals, ms, run, satisfies_contract};

fn config() -> RedConfig {
    RedConfig::new(120_000, 12_000_000)
}

/// One packet every `micros` microseconds for 1.5 s, over a link of one packet per millisecond.
fn overload(config: RedConfig, micros: u64, ecn: Ecn) -> Vec<Exit<usize>> {
    let queue = Red::new(config, Seed::new(1));
    let mut packet = Packet::new(1500, 0);
    packet.ecn = ecn;
    let arrivals: Vec<_> = (0..1_500_000 / micros)
        .map(|i| (Time::from_nanos(i * micros * 1000), packet))
        .collect();
    run(
        &mut Rate::new(12_000_000, Box::new(queue)),
        &arrivals,
        ms(3000),
    )
}

fn count(exits: &[Exit<usize>], reason: DropReason) -> usize {
    exits
        .iter()
        .filter(|exit| exit.dropped == Some(reason))
        .count()
}

#[test]
fn drop_probability_rises_with_the_average() {
    let config = config();
    for (bytes, expected) in [
        (9_999.0, 0.0),
        (20_000.0, 0.05),
        (30_000.0, 0.1),
        (45_000.0, 0.55),
        (60_000.0, 1.0),
    ] {
        assert!((config.probability(bytes) - expected).abs() < 1e-9);
    }
    let steep = RedConfig {
        gentle: false,
        ..config
    };
    assert!((steep.probability(30_000.0) - 1.0).abs() < 1e-9);
}

#[test]
fn red_drops_before_the_queue_is_full() {
    let exits = overload(config(), 900, Ecn::Ect0);
    assert_eq!(count(&exits, DropReason::QueueFull), 0);
    let early = count(&exits, DropReason::QueueManagement);
    assert!((50..200).contains(&early), "{early}");
    assert_eq!(
        count(
            &overload(config(), 1000, Ecn::Ect0),
            DropReason::QueueManagement
        ),
        0
    );
}

#[test]
fn ecn_capable_packets_are_marked_until_drops_are_certain() {
    let config = RedConfig {
        ecn: true,
        ..config()
    };
    let exits = overload(config, 990, Ecn::Ect0);
    assert!(exits.iter().all(|exit| exit.dropped.is_none()));
    let exits = overload(config, 990, Ecn::NotEct);
    assert!(exits.iter().all(|exit| exit.packet.ecn == Ecn::NotEct));
    // At twice the rate, marks alone are not sufficient.
    let exits = overload(config, 500, Ecn::Ect0);
    assert!(count(&exits, DropReason::QueueManagement) > 100);
    assert!(exits.iter().any(|exit| exit.packet.ecn == Ecn::Ce));
}

#[test]
fn a_full_queue_drops_regardless_of_the_average() {
    let burst: Vec<_> = (0..100)
        .map(|body| (ms(0), Packet::new(1500, body)))
        .collect();
    let queue = Red::new(config(), Seed::new(1));
    let exits = run(
        &mut Rate::new(12_000_000, Box::new(queue)),
        &burst,
        ms(1000),
    );
    assert_eq!(count(&exits, DropReason::QueueFull), 19);
}

#[test]
fn gaps_between_drops_are_uniform() {
    let mut red = Red::<()>::new(config(), Seed::new(2));
    let mut gaps = Vec::new();
    let mut last = 0;
    for i in 0..10_000 {
        if red.chooses(0.05) {
            gaps.push(i - last);
            last = i;
        }
    }
    // Uniform between 1 and 1/p.
    assert!(gaps.iter().all(|gap| (1..=20).contains(gap)));
    let mean = f64::from(gaps.iter().sum::<i32>()) / gaps.len() as f64;
    assert!((mean - 10.5).abs() < 0.6, "{mean}");
}

#[test]
fn the_average_decays_while_the_queue_is_empty() {
    let mut red = Red::<()>::new(config(), Seed::new(2));
    red.average = 20_000.0;
    red.idle = Some(ms(0));
    red.observe(ms(1000));
    assert!((red.average - 20_000.0 * libm::pow(0.998, 1001.0)).abs() < 1e-6);
}

proptest! {
    #[test]
    fn red_satisfies_the_link_contract(
        arrivals in arrivals(1500, Duration::from_millis(3)),
        seed: u64,
        ecn: bool,
        gentle: bool,
    ) {
        let config = RedConfig {
            weight: 0.1,
            ecn,
            gentle,
            ..RedConfig::new(20_000, 4_000_000)
        };
        let make = || Rate::new(4_000_000, Box::new(Red::new(config, Seed::new(seed))));
        satisfies_contract(make, &arrivals)?;
    }
}
