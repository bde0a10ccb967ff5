//! The capacity that is saved for careful resume.

use super::*;

/// A window and the second when it was observed.
#[derive(Debug, PartialEq)]
struct Saved(u64, u64);

/// The capacity saved after samples a second apart.
fn after_all(samples: &[PathSample]) -> Option<Saved> {
    let history = history(HistoryConfig::default());
    for (n, seen) in samples.iter().enumerate() {
        history.observe(&after(Duration::from_secs(n as u64), kind(1)), seen);
    }
    let now = after(Duration::from_secs(samples.len() as u64), kind(1));
    history
        .learner
        .capacity(&now)
        .map(|known| Saved(known.window, (known.at - Instant::EPOCH).as_secs()))
}

fn delivered(delivered: u64, seen: PathSample) -> PathSample {
    PathSample { delivered, ..seen }
}

fn lost(seen: PathSample) -> PathSample {
    PathSample {
        lost_at_first: true,
        ..seen
    }
}

#[test]
fn the_capacity_is_the_acknowledged_part_of_the_window() {
    let seen = closed(200_000);
    assert_eq!(after_all(&[seen]), Some(Saved(200_000, 0)));
    assert_eq!(
        after_all(&[delivered(90_000, seen)]),
        Some(Saved(90_000, 0))
    );
    assert_eq!(after_all(&[delivered(DEFAULT - 1, seen)]), None);
    let without_rtt = PathSample {
        rtt: Duration::ZERO,
        ..seen
    };
    assert_eq!(after_all(&[without_rtt]), None);
}

#[test]
fn a_newer_capacity_replaces_an_older_one() {
    assert_eq!(
        after_all(&[closed(200_000), closed(90_000)]),
        Some(Saved(90_000, 1))
    );
    assert_eq!(
        after_all(&[closed(90_000), limited(200_000)]),
        Some(Saved(200_000, 1))
    );
}

#[test]
fn an_app_limited_connection_does_not_lower_it() {
    assert_eq!(
        after_all(&[closed(200_000), limited(90_000)]),
        Some(Saved(200_000, 0))
    );
}

#[test]
fn a_loss_of_the_first_flight_lowers_it_at_once() {
    let little = delivered(3000, lost(limited(8400)));
    assert_eq!(after_all(&[closed(200_000), little]), Some(Saved(8400, 1)));
    assert_eq!(after_all(&[little]), None);
    let but_more = lost(closed(300_000));
    assert_eq!(
        after_all(&[closed(200_000), but_more]),
        Some(Saved(300_000, 1))
    );
    assert_eq!(
        after_all(&[closed(200_000), delivered(3000, but_more)]),
        Some(Saved(200_000, 0))
    );
}

#[test]
fn the_saved_round_trip_time_is_of_the_same_connection() {
    let history = history(HistoryConfig::default());
    history.observe(&kind(1), &closed(90_000));
    let slower = PathSample {
        rtt: 3 * RTT,
        ..closed(200_000)
    };
    history.observe(&kind(1), &slower);
    let known = history.learner.capacity(&kind(1)).unwrap();
    assert_eq!((known.window, known.rtt), (200_000, 3 * RTT));
}

#[test]
fn a_capacity_expires_though_its_record_is_updated() {
    let history = history(HistoryConfig::default());
    history.observe(&kind(1), &closed(200_000));
    for _ in 0..9 {
        history.observe(&after(HOUR / 4, kind(1)), &closed(20_000));
    }
    history.observe(&after(HOUR / 2, kind(1)), &limited(100_000));
    let before = history.learner.capacity(&after(HOUR, kind(1))).unwrap();
    assert_eq!(before.window, 100_000);
    history.observe(&after(HOUR, kind(1)), &limited(90_000));
    let last = after(HOUR * 3 / 2, kind(1));
    assert_eq!(history.learner.capacity(&last), None);
    assert!(history.average(&last).is_some());
}
