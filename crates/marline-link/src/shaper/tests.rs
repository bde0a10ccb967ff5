use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::testing::{arrivals, ms, run, satisfies_contract};

const CONFIG: ShaperConfig = ShaperConfig {
    rate: 8_000_000,
    burst: 5000,
    peak: None,
    limit: 100_000,
};

fn packets(count: u64) -> Vec<(Time, Packet<u64>)> {
    let packet = |body| (Time::ZERO, Packet::new(1000, body));
    (0..count).map(packet).collect()
}

fn departures(config: ShaperConfig, count: u64) -> Vec<Time> {
    let exits = run(&mut Shaper::new(config), &packets(count), Time::MAX);
    let arrived = exits.iter().filter(|exit| exit.dropped.is_none());
    arrived.map(|exit| exit.at).collect()
}

#[test]
fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
    // A byte a microsecond: after five packets one a millisecond.
    let expected: Vec<_> = [0, 0, 0, 0, 0, 1, 2, 3].map(ms).into();
    assert_eq!(departures(CONFIG, 8), expected);
}

#[test]
fn the_peak_rate_limits_bursts() {
    let peak = Peak {
        rate: 16_000_000,
        burst: 1000,
    };
    let config = ShaperConfig {
        peak: Some(peak),
        ..CONFIG
    };
    // Half a millisecond each, until the bucket of 5000 bytes is empty: it lasts for B / (1 - r/p) = 10,000 bytes,
    // the first of which the peak's bucket passes at once.
    let at = departures(config, 14);
    let gaps: Vec<_> = at.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert_eq!(gaps[..8], [Duration::from_micros(500); 8]);
    assert_eq!(gaps[9..], [Duration::from_millis(1); 4]);
}

#[test]
fn the_limit_counts_all_waiting_bytes() {
    let config = ShaperConfig {
        limit: 3000,
        ..CONFIG
    };
    // As in `tc-tbf`, the first packets leave the queue when they arrive only if nobody waits before them.
    let mut shaper = Shaper::new(config);
    let mut dropped = 0;
    for (now, packet) in packets(12) {
        shaper.push(now, packet);
        while let Some(exit) = shaper.pop(now) {
            dropped += u32::from(exit.dropped == Some(DropReason::QueueFull));
        }
    }
    assert_eq!((dropped, shaper.queued_bytes()), (4, 3000));
}

#[test]
fn packets_larger_than_a_bucket_are_dropped() {
    let mut shaper = Shaper::new(CONFIG);
    shaper.push(Time::ZERO, Packet::new(5001, ()));
    let exit = shaper.pop(Time::ZERO).unwrap();
    assert_eq!(exit.dropped, Some(DropReason::TooLarge));
    assert_eq!(shaper.next_event(), None);
}

proptest! {
    #[test]
    fn departures_conform_to_both_buckets(arrivals in arrivals(1500, Duration::from_millis(3)), with_peak: bool) {
        let peak = Peak { rate: 20_000_000, burst: 1500 };
        let config = ShaperConfig { peak: with_peak.then_some(peak), limit: 20_000, ..CONFIG };
        satisfies_contract(|| Shaper::new(config), &arrivals)?;
        let mut now = Time::ZERO;
        let packets: Vec<_> = arrivals.iter().map(|arrival| {
            now += arrival.gap;
            (now, Packet::new(arrival.size, ()))
        }).collect();
        let exits = run(&mut Shaper::new(config), &packets, Time::MAX);
        let left: Vec<_> = exits.iter().filter(|exit| exit.dropped.is_none()).collect();
        // The arrival curve of a token bucket: at most burst + rate * time in each interval.
        for first in 0..left.len() {
            let mut bytes = 0;
            for last in &left[first..] {
                bytes += u128::from(last.packet.size);
                let nanos = last.at.since(left[first].at).as_nanos();
                let curve = |rate: u64, burst: u64| u128::from(burst) * 8_000_000_000 + u128::from(rate) * nanos;
                prop_assert!(bytes * 8_000_000_000 <= curve(config.rate, config.burst));
                if let Some(peak) = config.peak {
                    prop_assert!(bytes * 8_000_000_000 <= curve(peak.rate, peak.burst));
                }
            }
        }
    }
}
