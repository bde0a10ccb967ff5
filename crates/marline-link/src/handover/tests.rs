use proptest::prelude::*;

use super::*;
use crate::process::Steady;
use crate::testing::{arrivals, ms, satisfies_contract};

const CONFIG: HandoverConfig = HandoverConfig {
    every: Duration::from_secs(15),
    delay: [Duration::from_millis(2), Duration::from_millis(8)],
    rate: [0.2, 1.0],
    gap: Duration::from_millis(30),
};

fn handovers(seed: u64) -> Handovers {
    Handovers::new(CONFIG, Seed::new(seed))
}

#[test]
fn delay_and_rate_are_constant_between_handovers_and_uniform_over_them() {
    let handovers = handovers(1);
    let (mut now, mut slots) = (Time::ZERO, Vec::new());
    for _ in 0..2000 {
        let slot = handovers.slot(now);
        let last = handovers.slot(slot.end - Duration::from_nanos(1));
        assert_eq!(
            (slot.delay, slot.rate, slot.end),
            (last.delay, last.rate, last.end)
        );
        slots.push(slot);
        now = slot.end;
        assert_eq!(handovers.slot(now).age, Duration::ZERO);
    }
    let gaps: Vec<_> = slots
        .windows(2)
        .map(|pair| pair[1].end.since(pair[0].end))
        .collect();
    assert!(gaps.iter().all(|gap| *gap == CONFIG.every));
    let mean = |value: fn(&Slot) -> f64| slots.iter().map(value).sum::<f64>() / slots.len() as f64;
    let delay = mean(|slot| slot.delay.as_secs_f64() * 1e3);
    assert!((delay - 5.0).abs() < 0.15, "{delay}");
    let rate = mean(|slot| slot.rate);
    assert!((rate - 0.6).abs() < 0.02, "{rate}");
}

#[test]
fn rates_and_delays_of_equal_seeds_change_together() {
    let mut rate = handovers(3).rate(Box::new(Steady {
        bits_per_second: 1_000_000,
    }));
    let segment = rate.at(ms(100));
    let slot = handovers(3).slot(ms(100));
    assert_eq!(segment.until, slot.end);
    assert_eq!(segment.bits_per_second, (slot.rate * 1e6).round() as u64);
    assert_ne!(
        handovers(3).slot(ms(100)).end,
        handovers(4).slot(ms(100)).end
    );
}

#[test]
fn packets_are_lost_in_the_gap_after_a_handover() {
    let mut filter = handovers(5);
    let begin = filter.slot(Time::ZERO).end;
    let mut lost = |now| filter.inspect(now, &mut Packet::new(1, ())).is_some();
    assert!(!lost(begin - Duration::from_nanos(1)));
    assert!(lost(begin) && lost(begin + Duration::from_micros(29_999)));
    assert!(!lost(begin + CONFIG.gap));
}

proptest! {
    #[test]
    fn delays_satisfy_the_contract(arrivals in arrivals(1500, Duration::from_secs(4)), seed: u64) {
        satisfies_contract(|| HandoverDelay::new(handovers(seed)), &arrivals)?;
    }
}
