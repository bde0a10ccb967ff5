use proptest::prelude::*;

use super::*;
use crate::testing::{Moments, arrivals, moments, ms, ns, run, satisfies_contract};

/// Sorted round-trip times in milliseconds of pings 100 ms apart, without lost ones.
fn pings(config: &LteConfig, count: u64) -> Vec<f64> {
    let seed = Seed::new(7);
    let mut up = Lte::new(config, Direction::Uplink, seed);
    let mut down = Lte::new(config, Direction::Downlink, seed);
    let mut rtts: Vec<_> = (0..count)
        .filter_map(|i| {
            let sent = Time::from_nanos(i * 100_000_000 + seed.nth(i).value() % 10_000_000);
            let received = carry(&mut up, sent)?;
            let back = carry(&mut down, received)?;
            Some(back.since(sent).as_secs_f64() * 1e3)
        })
        .collect();
    rtts.sort_unstable_by(f64::total_cmp);
    rtts
}

/// The arrival time of a single packet, if it arrives.
fn carry(link: &mut Lte<()>, now: Time) -> Option<Time> {
    link.push(now, Packet::new(100, ()));
    let mut events = 0;
    loop {
        events += 1;
        assert!(events < 5, "an event without a packet");
        if let Some(exit) = link.pop(link.next_event().unwrap()) {
            assert_eq!(link.next_event(), None);
            return exit.dropped.is_none().then_some(exit.at);
        }
    }
}

/// Megabits delivered in each of `seconds` seconds, with a queue that is never empty.
fn goodput(config: &LteConfig, seconds: usize) -> Vec<f64> {
    const SIZE: u32 = 9000;
    let mut link = Lte::new(config, Direction::Downlink, Seed::new(7));
    let mut windows = vec![0.0; seconds];
    for _ in 0..40 {
        link.push(Time::ZERO, Packet::new(SIZE, ()));
    }
    loop {
        let now = link.next_event().unwrap();
        while let Some(exit) = link.pop(now) {
            link.push(now, Packet::new(SIZE, ()));
            let second = usize::try_from(exit.at.as_nanos() / 1_000_000_000).unwrap();
            match windows.get_mut(second) {
                Some(window) if exit.dropped.is_none() => *window += f64::from(SIZE * 8) / 1e6,
                Some(_) => {}
                None => return windows,
            }
        }
    }
}

#[test]
fn ping_times_match_the_measured_distribution() {
    let rtts = pings(&LteConfig::default(), 100_000);
    let median = rtts[rtts.len() / 2];
    let std = moments(&rtts).deviation;
    assert!((median - 21.2).abs() < 0.3, "{median}");
    assert!((std - 3.5).abs() < 0.3, "{std}");
    let lost = 100_000 - rtts.len();
    assert!((120..240).contains(&lost), "{lost}");
    // Without a retry a ping takes from 17.74 to 23.74 ms; with one, 8 ms longer, which leaves a gap.
    let within = |from: f64, to: f64| {
        let inside = rtts.iter().filter(|rtt| (from..to).contains(*rtt)).count();
        inside as f64 / rtts.len() as f64
    };
    assert!((within(17.74, 23.741) - 0.8464).abs() < 0.01);
    assert!((within(25.74, 31.741) - 0.1472).abs() < 0.01);
    assert!(within(23.741, 25.74) < 1e-9);
}

#[test]
fn core_delay_is_added_in_each_direction() {
    let far = LteConfig {
        core_delay: Duration::from_micros(2870 + 12_000),
        ..LteConfig::default()
    };
    let near = pings(&LteConfig::default(), 5000);
    let far = pings(&far, 5000);
    assert!((far[2500] - near[2500] - 24.0).abs() < 0.3);
}

fn has_the_configured_rate(megabits: f64) {
    let config = LteConfig {
        bits_per_second: (megabits * 1e6) as u64,
        residual_loss: 0.0,
        ..LteConfig::default()
    };
    let Moments {
        mean,
        deviation: std,
    } = moments(&goodput(&config, 500));
    assert!((mean - megabits).abs() < 1.0, "{mean}");
    assert!((std - 5.1).abs() < 0.4, "{std}");
}

#[test]
fn a_busy_cell_has_the_configured_rate() {
    has_the_configured_rate(35.4);
}

#[test]
fn a_good_cell_has_the_configured_rate() {
    has_the_configured_rate(65.9);
}

#[test]
fn an_excellent_cell_has_the_configured_rate() {
    has_the_configured_rate(94.1);
}

#[test]
fn run_scope_varies_the_rate_between_runs_only() {
    let config = LteConfig {
        std_scope: StdScope::Run,
        ..LteConfig::default()
    };
    let rates: Vec<_> = (0..2000)
        .map(|run| {
            let mut rate = config.radio_rate(Seed::new(run));
            let segment = rate.at(ms(0));
            assert_eq!(segment.bits_per_second, rate.at(ms(5000)).bits_per_second);
            segment.bits_per_second as f64 / 1e6 / config.mean_tries()
        })
        .collect();
    let Moments {
        mean,
        deviation: std,
    } = moments(&rates);
    assert!((mean - 65.9).abs() < 0.4, "{mean}");
    assert!((std - 5.1).abs() < 0.3, "{std}");
}

/// A radio with a constant 8 Mb/s, 1000 bytes per block, and no losses.
fn plain() -> LteConfig {
    LteConfig {
        bits_per_second: 8_000_000,
        std_bits_per_second: 0,
        block_error: 0.0,
        residual_loss: 0.0,
        core_delay: Duration::ZERO,
        ..LteConfig::default()
    }
}

fn exit_micros(config: &LteConfig, direction: Direction, sent: &[(u64, u32)]) -> Vec<u128> {
    let packet = |(body, (micros, size)): (usize, &(u64, u32))| {
        (ns(1000 * micros), Packet::new(*size, body))
    };
    let arrivals: Vec<_> = sent.iter().enumerate().map(packet).collect();
    let mut link = Lte::new(config, direction, Seed::new(1));
    let exits = run(&mut link, &arrivals, ms(1_000_000));
    assert!(exits.is_sorted_by_key(|exit| exit.packet.body));
    let micros = exits
        .iter()
        .map(|exit| exit.at.since(Time::ZERO).as_micros());
    micros.collect()
}

#[test]
fn packets_span_and_share_transport_blocks() {
    let sent = [(300, 1500), (300, 400), (300, 200), (1300, 900)];
    let exits = exit_micros(&plain(), Direction::Downlink, &sent);
    assert_eq!(exits, [4500, 4500, 5500, 5500]);
}

#[test]
fn a_failed_block_delays_the_packets_behind_it() {
    let config = LteConfig {
        block_error: 0.08,
        ..plain()
    };
    let sent: Vec<_> = (0..400).map(|i| (1000 * i + 500, 1)).collect();
    let exits = exit_micros(&config, Direction::Downlink, &sent);
    let delays: Vec<_> = exits
        .iter()
        .zip(&sent)
        .map(|(exit, (at, _))| exit - u128::from(*at))
        .collect();
    let retried = delays.iter().position(|delay| *delay > 3000).unwrap();
    assert_eq!(delays[retried], 11_000);
    let behind = (1..8).map(|i| delays[retried + i]);
    assert!(
        behind
            .zip((4000..=10_000).rev().step_by(1000))
            .all(|(found, least)| found >= least)
    );
}

#[test]
fn the_uplink_requests_a_grant_only_after_idle_time() {
    let sent: Vec<_> = (0..50).map(|i| (100_300 + 300 * i, 40)).collect();
    let exits = exit_micros(&plain(), Direction::Uplink, &sent);
    let delay = |i: usize| exits[i] - u128::from(sent[i].0);
    assert!((9500..=14_500).contains(&delay(0)), "{}", delay(0));
    for i in 20..50 {
        assert!((9500..=10_500).contains(&delay(i)), "{i}: {}", delay(i));
    }
}

#[test]
fn drx_delays_packets_after_inactivity() {
    let drx = Drx {
        after: Duration::from_millis(100),
        cycle: Duration::from_millis(40),
    };
    let config = LteConfig {
        drx: Some(drx),
        ..plain()
    };
    let sent: Vec<_> = (0..200)
        .flat_map(|i| [(500_500 * i + 200_000, 40), (500_500 * i + 290_000, 40)])
        .collect();
    let exits = exit_micros(&config, Direction::Downlink, &sent);
    let waits = |awake: usize| {
        let chosen = (awake..sent.len()).step_by(2);
        chosen
            .map(|i| exits[i] - u128::from(sent[i].0) - 2500)
            .collect::<Vec<_>>()
    };
    assert!(waits(1).iter().all(|wait| *wait <= 1000));
    let asleep = waits(0);
    assert!(asleep.iter().any(|wait| *wait > 35_000));
    assert!(asleep.iter().all(|wait| *wait <= 40_000));
}

#[test]
fn blocks_that_fail_all_transmissions_are_late_or_lost_by_rlc_mode() {
    let hopeless = |rlc_mode| LteConfig {
        block_error: 1.0,
        retry_error: 1.0,
        rlc_mode,
        ..plain()
    };
    let carry = |rlc_mode| {
        let mut link = Lte::new(&hopeless(rlc_mode), Direction::Downlink, Seed::new(1));
        link.push(ns(1), Packet::new(10, ()));
        link.pop(ms(1000)).unwrap()
    };
    let late = carry(RlcMode::Acknowledged);
    assert_eq!((late.at, late.dropped), (ns(75_500_000), None));
    let lost = carry(RlcMode::Unacknowledged);
    assert_eq!(lost.at, ns(67_500_000));
    assert_eq!(lost.dropped, Some(DropReason::RadioRetries));
}

#[test]
fn the_queue_limit_drops_excess_packets() {
    let config = LteConfig {
        queue_bytes: 3000,
        ..plain()
    };
    let mut link = Lte::new(&config, Direction::Downlink, Seed::new(1));
    for body in 0..3 {
        link.push(ns(1), Packet::new(1500, body));
    }
    let lost = link.pop(ns(1)).unwrap();
    assert_eq!(
        (lost.packet.body, lost.dropped),
        (2, Some(DropReason::QueueFull))
    );
    assert_eq!(link.queued_bytes(), 3000);
    assert_eq!(link.pop(ms(1)), None);
    assert_eq!(link.queued_bytes(), 2000);
}

#[test]
fn radio_behaviour_is_independent_of_traffic() {
    let config = LteConfig {
        residual_loss: 0.0,
        ..LteConfig::default()
    };
    let probe = |busy: bool| {
        let mut link = Lte::new(&config, Direction::Downlink, Seed::new(4));
        let mut last = Time::ZERO;
        for second in 1..200 {
            let burst = if busy { 50 } else { 1 };
            for _ in 0..burst {
                link.push(ms(1000 * second), Packet::new(100, ()));
            }
            while let Some(exit) = link.pop(ms(1000 * second + 900)) {
                last = last.max(exit.at);
            }
        }
        last
    };
    assert_eq!(probe(true), probe(false));
}

#[test]
fn results_are_identical_on_every_platform() {
    let mut link = Lte::new(&LteConfig::default(), Direction::Uplink, Seed::new(2026));
    let arrivals: Vec<_> = (0..20_000)
        .map(|i| (ns(i * 150_000), Packet::new(1200, ())))
        .collect();
    let exits = run(&mut link, &arrivals, Time::MAX);
    // FNV-1a over the outcome and time of each packet.
    let digest = exits.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, exit| {
        let outcome = exit.at.as_nanos() << 1 | u64::from(exit.dropped.is_some());
        (hash ^ outcome).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(format!("{digest:016x}"), "5f0ef46c036856d9");
}

proptest! {
    #[test]
    fn lte_satisfies_the_link_contract(
        arrivals in arrivals(3000, Duration::from_millis(9)),
        seed: u64,
        uplink: bool,
        acknowledged: bool,
        sleeps: bool,
    ) {
        let drx = Drx {
            after: Duration::from_millis(10),
            cycle: Duration::from_millis(7),
        };
        let config = LteConfig {
            bits_per_second: 5_000_000,
            block_error: 0.3,
            retry_error: 0.5,
            residual_loss: 0.05,
            queue_bytes: 10_000,
            drx: sleeps.then_some(drx),
            rlc_mode: if acknowledged { RlcMode::Acknowledged } else { RlcMode::Unacknowledged },
            ..LteConfig::default()
        };
        let direction = if uplink { Direction::Uplink } else { Direction::Downlink };
        satisfies_contract(|| Lte::new(&config, direction, Seed::new(seed)), &arrivals)?;
    }
}
