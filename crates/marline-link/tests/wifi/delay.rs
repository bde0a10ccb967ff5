//! Delays on the channel of [`wifi_n_190`].

use std::time::Duration;

use marline_link::wifi::{WifiMedium, wifi_n_190};
use marline_link::{Medium, Packet, Seed, Time};
use rand::RngExt;

use super::source::{Source, run};

/// Size of a ping in bytes, including its IP header.
const PING_BYTES: u32 = 84;

/// The measurements of a round of packets.
struct Round {
    /// Round-trip times in milliseconds.
    times: Vec<f64>,
    /// Arrival time of the last answer.
    end: Time,
}

/// Sends `count` packets of `bytes` bytes from station 0 at `at`, each answered by a packet of the size
/// of a ping.
fn round_trips(medium: &mut WifiMedium<()>, at: Time, bytes: u32, count: usize) -> Round {
    let mut now = at;
    for _ in 0..count {
        medium.push(now, 0, 1, Packet::new(bytes, ()));
    }
    let mut times = Vec::new();
    while times.len() < count {
        now = medium.next_event().unwrap();
        while let Some(carried) = medium.pop(now) {
            assert_eq!(carried.exit.dropped, None);
            if carried.to == 1 {
                medium.push(now, 1, 0, Packet::new(PING_BYTES, ()));
            } else {
                times.push(now.since(at).as_secs_f64() * 1e3);
            }
        }
    }
    Round { times, end: now }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn ping_times_match_the_measurement() {
    let mut medium = WifiMedium::new(&wifi_n_190(), Seed::new(1)).unwrap();
    let mut times = Vec::new();
    let mut at = Time::ZERO;
    for _ in 0..20_000 {
        let round = round_trips(&mut medium, at, PING_BYTES, 1);
        times.extend(round.times);
        at = round.end + Duration::from_millis(200);
    }
    let mean_ms = mean(&times);
    let squares: Vec<f64> = times
        .iter()
        .map(|time| (time - mean_ms) * (time - mean_ms))
        .collect();
    let deviation = mean(&squares).sqrt();
    times.sort_by(f64::total_cmp);
    let percentile = |percent: usize| times[times.len() * percent / 100];
    println!(
        "ping: mean {mean_ms:.2} ms, expected 10.5; deviation {deviation:.2}, expected 6.1; median {:.1}, expected 8.4; \
         p95 {:.1}, expected 22.8; p99 {:.1}, expected 39",
        percentile(50),
        percentile(95),
        percentile(99)
    );
    assert!((mean_ms - 10.5).abs() < 0.3);
    assert!((deviation - 6.1).abs() < 0.4);
}

#[test]
fn download_goodput_matches_the_measurement() {
    for every in [2, 4] {
        let source = Source::saturated(every);
        let got = run(&wifi_n_190(), source, Duration::from_secs(12), 1).goodput;
        println!("an ACK for {every}: {got:.1} Mb/s, expected 190");
        assert!((got - 190.0).abs() < 4.0);
    }
}

/// The share of rounds in which HyStart++ (RFC 9406) detects a queue: the minimum of eight round-trip
/// times exceeds that of the previous round by an eighth, at least 4 and at most 16 ms.
fn early_exits(minima: &[f64]) -> f64 {
    let exits = minima
        .windows(2)
        .filter(|pair| pair[1] >= pair[0] + (pair[0] / 8.0).clamp(4.0, 16.0))
        .count();
    exits as f64 / (minima.len() - 1) as f64
}

#[test]
fn delay_shared_by_a_round_triggers_hystart_and_independent_delay_does_not() {
    let mut medium = WifiMedium::new(&wifi_n_190(), Seed::new(1)).unwrap();
    let mut samples = Vec::new();
    let mut minima = Vec::new();
    let mut at = Time::ZERO;
    for _ in 0..5_000 {
        let Round { times, end } = round_trips(&mut medium, at, 1500, 10);
        let eight = &times[..8];
        minima.extend(eight.iter().copied().min_by(f64::total_cmp));
        samples.extend_from_slice(eight);
        // A pause, so that rounds are independent of each other.
        at = end + Duration::from_millis(100);
    }
    let shared = early_exits(&minima);

    let mut rng = Seed::new(2).rng();
    let independent: Vec<f64> = (0..100_000)
        .filter_map(|_| {
            let draw = |_| samples[rng.random_range(0..samples.len())];
            (0..8).map(draw).min_by(f64::total_cmp)
        })
        .collect();
    let independent = early_exits(&independent);
    println!(
        "early exits: {:.1} % of rounds, expected at least 10; {:.4} % with independent delays, expected below 0.1",
        100.0 * shared,
        100.0 * independent
    );
    assert!(shared >= 0.1);
    assert!(independent < 0.001);
}
