use super::*;
use crate::queue::{DropTail, Limit};
use crate::testing::{Moments, arrivals, moments, ms, ns, satisfies_contract};
use crate::{Link, Packet, Rate};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn steps_hold_each_rate_until_the_next_change() {
    let change = |at, bits_per_second| RateChange {
        at,
        bits_per_second,
    };
    let mut steps = Steps::new(5, vec![change(ms(20), 0), change(ms(10), 7)]);
    let segment = |bits_per_second, until| Segment {
        bits_per_second,
        until,
    };
    assert_eq!(steps.at(ms(0)), segment(5, ms(10)));
    assert_eq!(steps.at(ms(10)), segment(7, ms(20)));
    assert_eq!(steps.at(ms(25)), segment(0, Time::MAX));
    let mut again = Steps::new(5, vec![change(ms(10), 7)]).repeating(Duration::from_millis(30));
    assert_eq!(again.at(ms(35)), segment(5, ms(40)));
    assert_eq!(again.at(ms(59)), segment(7, ms(60)));
    assert_eq!(again.at(ms(60)), segment(5, ms(70)));
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
fn markov_states_have_the_configured_dwell_times() {
    let state = |bits_per_second, millis| State {
        bits_per_second,
        mean_dwell: Duration::from_millis(millis),
    };
    let states = vec![state(1, 50), state(2, 100), state(3, 350)];
    let mut process = Markov::new(states, Seed::new(5));
    let mut shares = [0; 4];
    let mut now = Time::ZERO;
    while now < ms(10_000_000) {
        let segment = process.at(now);
        assert!(segment.until > now);
        let share = usize::try_from(segment.bits_per_second).unwrap();
        shares[share] += segment.until.since(now).as_millis();
        now = segment.until;
    }
    let total: u128 = shares.iter().sum();
    let percent = shares.map(|share| share * 100 / total);
    assert!((9..=10).contains(&percent[1]), "{percent:?}");
    assert!((19..=21).contains(&percent[2]), "{percent:?}");
}

#[test]
fn markov_with_fewer_than_two_states_is_constant() {
    assert_eq!(
        Markov::new(vec![], Seed::new(1)).at(ms(5)).bits_per_second,
        0
    );
    let one = State {
        bits_per_second: 9,
        mean_dwell: Duration::ZERO,
    };
    let segment = Markov::new(vec![one], Seed::new(1)).at(ms(5));
    assert_eq!((segment.bits_per_second, segment.until), (9, Time::MAX));
}

#[test]
fn a_rate_change_takes_effect_within_a_packet() {
    // 12,000 bits: 6,000 in the first 6 ms, none in the next 10 ms, the rest in 3 ms.
    let change = |at, bits_per_second| RateChange {
        at,
        bits_per_second,
    };
    let changes = vec![change(ms(6), 0), change(ms(16), 2_000_000)];
    let steps = Steps::new(1_000_000, changes);
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
        ornstein_uhlenbeck: bool,
    ) {
        let ten = Duration::from_millis(10);
        let make = || {
            let seed = Seed::new(seed);
            let process: Box<dyn RateProcess> = if ornstein_uhlenbeck {
                Box::new(OrnsteinUhlenbeck::new(5e6, 5e6, ten, ten / 5, seed))
            } else {
                Box::new(Markov::on_off(10_000_000, ten, ten, seed))
            };
            Rate::varying(process, Box::new(DropTail::new(Limit::Packets(5))))
        };
        satisfies_contract(make, &arrivals)?;
    }

    #[test]
    fn segments_end_after_the_query_time(
        initial: u64,
        changes in proptest::collection::vec((0..100u64, any::<u64>()), 0..5),
        period in 1..50u64,
        now in 0..200u64,
    ) {
        let changes = changes.into_iter().map(|(at, bits_per_second)| RateChange {
            at: ns(at),
            bits_per_second,
        });
        let changes = changes.collect();
        let mut steps = Steps::new(initial, changes).repeating(Duration::from_nanos(period));
        prop_assert!(steps.at(ns(now)).until > ns(now));
    }
}
