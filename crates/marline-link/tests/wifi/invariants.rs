//! Invariants of every medium under arbitrary traffic.

use std::collections::HashMap;
use std::time::Duration;

use marline_link::wifi::{
    Contender, Errors, Fades, HopConfig, Phy, RateControl, Scan, Signal, StationConfig, Topology,
    Waypoint, Width, WifiConfig, WifiMedium,
};
use marline_link::{Carried, Medium, Packet, Seed, Time};
use proptest::prelude::*;

/// A packet to push.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// Time since the previous packet.
    gap: Duration,
    from: usize,
    to: usize,
    bytes: u32,
}

prop_compose! {
    fn stations()(
        aggregation in any::<bool>(),
        ack_aggregation in prop_oneof![Just(None), (1_u32..9).prop_map(Some)],
        queue_bytes in 3_000_u64..200_000,
    ) -> StationConfig {
        StationConfig { aggregation, ack_aggregation, queue_bytes, ..StationConfig::DEFAULT }
    }
}

prop_compose! {
    fn errors()(
        mpdu in prop_oneof![Just(0.0), 0.0..0.6],
        bit in prop_oneof![Just(0.0), 0.0..1e-4],
        fades in any::<bool>(),
    ) -> Errors {
        let fades = fades.then_some(Fades { begin: 0.1, end: 0.3, mpdu: 1.0 });
        Errors { mpdu, bit, fades }
    }
}

fn contenders() -> impl Strategy<Value = Vec<Contender>> {
    let on_off = Contender::OnOff {
        busy: Duration::from_millis(9),
        duty: 0.3,
    };
    prop::sample::subsequence(vec![Contender::SATURATED, on_off, on_off], 0..=3)
}

prop_compose! {
    fn media()(
        index in 0_u8..32,
        short in any::<bool>(),
        topology in prop::sample::select(vec![Topology::Direct, Topology::AccessPoint, Topology::Chain]),
        stations in prop::collection::vec(stations(), 2..5),
        errors in errors(),
        contenders in contenders(),
        max_amsdu_bytes in prop::sample::select(vec![None, Some(3839), Some(7935)]),
        rts_bytes in prop::sample::select(vec![None, Some(0), Some(2000)]),
        reorder in prop::sample::select(vec![None, Some(Duration::from_millis(100))]),
        scans in any::<bool>(),
        hop in prop::option::of(0_u8..32),
        meters in prop::option::of(1.0..80.0_f64),
        rate_control in prop::sample::select(vec![RateControl::Fixed, RateControl::Ideal, RateControl::Minstrel]),
        base_delay in (0_u64..5).prop_map(Duration::from_millis),
    ) -> WifiConfig {
        let scan = Scan {
            station: 1,
            first: Duration::from_millis(20),
            every: Duration::from_millis(300),
            length: Duration::from_millis(130),
        };
        WifiConfig {
            topology,
            stations,
            errors,
            contenders,
            max_amsdu_bytes: max_amsdu_bytes.filter(|_| rate_control == RateControl::Fixed),
            rate_control,
            signal: meters.map(|meters| {
                let walk = [(0, meters), (1, 80.0 - meters)];
                let walk = walk.map(|(at, meters)| Waypoint { at: Duration::from_secs(at), meters });
                Signal::new(walk.to_vec(), 15.0, 10.0)
            }),
            rts_bytes,
            reorder,
            hops: hop
                .map(|index| HopConfig {
                    between: [0, 1],
                    phy: Phy::ht(Width::Ht20, index, short),
                    errors: Errors::default(),
                    signal: None,
                })
                .into_iter()
                .collect(),
            scans: if scans { vec![scan] } else { Vec::new() },
            base_delay,
            ..WifiConfig::new(Phy::ht(Width::Ht40, index, short), 1)
        }
    }
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let gap = prop_oneof![3 => Just(0), 1 => 0_u64..3_000_000];
    let bytes = prop_oneof![Just(1500), 40_u32..200, 40_u32..1500];
    prop::collection::vec(
        (gap, any::<[u8; 2]>(), bytes).prop_map(|(gap, [from, to], bytes)| Offer {
            gap: Duration::from_nanos(gap),
            from: from.into(),
            to: to.into(),
            bytes,
        }),
        1..300,
    )
}

/// Source and destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Route {
    from: usize,
    to: usize,
}

/// The route of `offer` among `stations` stations.
fn route(offer: &Offer, stations: usize) -> Route {
    let from = offer.from % stations;
    let to = (from + 1 + offer.to % (stations - 1)) % stations;
    Route { from, to }
}

/// All exits, in order. With `eager` the medium is polled at every event, otherwise as late as possible.
fn carry(config: &WifiConfig, seed: u64, offers: &[Offer], eager: bool) -> Vec<Carried<usize>> {
    let mut medium = WifiMedium::new(config, Seed::new(seed)).unwrap();
    let mut carried = Vec::new();
    let mut now = Time::ZERO;
    for (number, offer) in offers.iter().enumerate() {
        let then = now + offer.gap;
        while let Some(due) = medium.next_event().filter(|&due| eager && due <= then) {
            now = now.max(due);
            carried.extend(std::iter::from_fn(|| medium.pop(now)));
        }
        now = then;
        let Route { from, to } = route(offer, medium.stations());
        medium.push(now, from, to, Packet::new(offer.bytes, number));
    }
    while let Some(due) = medium.next_event() {
        now = if eager { now.max(due) } else { Time::MAX };
        carried.extend(std::iter::from_fn(|| medium.pop(now)));
    }
    assert!((0..medium.stations()).all(|station| medium.queued_bytes(station) == 0));
    carried
}

#[test]
fn results_are_identical_on_every_platform() {
    let config = WifiConfig {
        topology: Topology::Chain,
        errors: Errors {
            mpdu: 0.05,
            bit: 1e-6,
            fades: Some(Fades {
                begin: 0.05,
                end: 0.3,
                mpdu: 1.0,
            }),
        },
        contenders: vec![
            Contender::SATURATED,
            Contender::OnOff {
                busy: Duration::from_millis(9),
                duty: 0.3,
            },
        ],
        ..WifiConfig::new(Phy::ht(Width::Ht40, 15, true), 2)
    };
    let offers: Vec<Offer> = (0..2000)
        .map(|number| Offer {
            gap: Duration::from_micros(150),
            from: 2 * (number % 2),
            to: 1 - number % 2,
            bytes: 1500,
        })
        .collect();
    let digest =
        carry(&config, 1, &offers, true)
            .into_iter()
            .fold(0_u64, |digest, Carried { exit, .. }| {
                let words = [
                    exit.at.as_nanos(),
                    exit.packet.body as u64,
                    exit.dropped.is_some().into(),
                ];
                words.into_iter().fold(digest, |digest, word| {
                    (digest ^ word)
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        .rotate_left(29)
                })
            });
    assert_eq!(digest, 4_825_611_858_478_479_121);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_packet_exits_once_in_order_and_not_too_early(
        config in media(), seed in any::<u64>(), offers in offers(),
    ) {
        let carried = carry(&config, seed, &offers, true);
        prop_assert_eq!(carried.len(), offers.len());
        let mut seen = vec![false; offers.len()];
        let mut before = Time::ZERO;
        let pushed: Vec<Time> = offers
            .iter()
            .scan(Time::ZERO, |now, offer| {
                *now += offer.gap;
                Some(*now)
            })
            .collect();
        for Carried { from, to, exit } in carried {
            let number = exit.packet.body;
            prop_assert!(!std::mem::replace(&mut seen[number], true));
            prop_assert_eq!(Route { from, to }, route(&offers[number], config.stations.len()));
            prop_assert!(exit.at >= before);
            before = exit.at;
            let delay = if exit.dropped.is_none() { config.base_delay } else { Duration::ZERO };
            prop_assert!(exit.at >= pushed[number] + delay);
        }
    }

    #[test]
    fn exits_depend_on_the_seed_and_not_on_polling(
        config in media(), seed in any::<u64>(), offers in offers(),
    ) {
        let eager = carry(&config, seed, &offers, true);
        prop_assert_eq!(&eager, &carry(&config, seed, &offers, true));
        prop_assert_eq!(&eager, &carry(&config, seed, &offers, false));
    }

    #[test]
    fn receivers_with_reordering_deliver_in_order(
        mut config in media(), seed in any::<u64>(), offers in offers(),
    ) {
        config.reorder = Some(Duration::from_millis(100));
        let mut latest = HashMap::new();
        for Carried { from, to, exit } in carry(&config, seed, &offers, true) {
            if exit.dropped.is_none() {
                let before = latest.insert((from, to), exit.packet.body);
                prop_assert!(before.is_none_or(|before| before < exit.packet.body));
            }
        }
    }
}
