use super::*;
use crate::queue::{DropTail, Limit};
use crate::testing::{Moments, arrivals, moments, ms, satisfies_contract};
use crate::{Link, Packet, Rate};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

/// A rate that follows a list of changes, whose first is at the beginning.
#[derive(Debug)]
struct Steps(Vec<(Time, u64)>);

impl RateProcess for Steps {
    fn at(&mut self, now: Time) -> Segment {
        let next = self.0.partition_point(|(at, _)| *at <= now);
        Segment {
            bits_per_second: self.0[next - 1].1,
            until: self.0.get(next).map_or(Time::MAX, |(at, _)| *at),
        }
    }
}

#[test]
fn ornstein_uhlenbeck_has_the_configured_moments_and_correlation() {
    let make = || OrnsteinUhlenbeck::new(6e7, 5e6, SECOND, SECOND / 10, Seed::new(3));
    let mut process = make();
    let rates: Vec<_> = (0..100_000)
        .map(|i| process.at(ms(100 * i)).bits_per_second as f64)
        .collect();
    let Moments {
        mean,
        deviation: std,
    } = moments(&rates);
    assert!((mean - 6e7).abs() < 2e5, "{mean}");
    assert!((std - 5e6).abs() < 1e5, "{std}");
    let product: f64 = rates
        .iter()
        .zip(&rates[10..])
        .map(|(a, b)| (a - mean) * (b - mean))
        .sum();
    let correlation = product / (std * std) / 99_990.0;
    assert!(
        (correlation - libm::exp(-1.0)).abs() < 0.03,
        "{correlation}"
    );

    let mut leaps = make();
    let leapt = leaps.at(ms(99_950));
    assert_eq!(leapt.until, ms(100_000));
    assert!((rates[999] - leapt.bits_per_second as f64).abs() < 0.5);
}

#[test]
fn ornstein_uhlenbeck_is_clipped_at_zero() {
    let mut process = OrnsteinUhlenbeck::new(0.0, 1e6, SECOND, SECOND, Seed::new(3));
    let still = (0..1000).filter(|i| process.at(ms(1000 * i)).bits_per_second == 0);
    assert!((400..600).contains(&still.count()));
}

#[test]
fn a_rate_change_takes_effect_within_a_packet() {
    // 12,000 bits: 6,000 in the first 6 ms, none in the next 10 ms, the rest in 3 ms.
    let steps = Steps(vec![(ms(0), 1_000_000), (ms(6), 0), (ms(16), 2_000_000)]);
    let queue = DropTail::new(Limit::Infinite);
    let mut link = Rate::varying(Box::new(steps), Box::new(queue));
    link.push(ms(0), Packet::new(1500, 0));
    link.push(ms(0), Packet::new(1500, 1));
    assert_eq!(link.next_event(), Some(ms(6)));
    assert_eq!(link.pop(ms(18)), None);
    assert_eq!(link.pop(ms(40)).unwrap().at, ms(19));
    assert_eq!(link.pop(ms(40)).unwrap().at, ms(25));
}

proptest! {
    #[test]
    fn varying_rates_satisfy_the_link_contract(
        arrivals in arrivals(1500, Duration::from_millis(3)),
        seed: u64,
    ) {
        let ten = Duration::from_millis(10);
        let make = || {
            let process = OrnsteinUhlenbeck::new(5e6, 5e6, ten, ten / 5, Seed::new(seed));
            Rate::varying(Box::new(process), Box::new(DropTail::new(Limit::Packets(5))))
        };
        satisfies_contract(make, &arrivals)?;
    }
}
