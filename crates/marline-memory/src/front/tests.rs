use std::net::SocketAddr;

use marline_proto::coordination::history::{Average, PathScope};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const UNIX: Duration = Duration::from_secs(1_800_000_000);
const LIFETIME: Duration = Duration::from_secs(3600);

fn front() -> Front {
    let limits = StoreLimits {
        lifetime: LIFETIME,
        ..StoreLimits::default()
    };
    Front::new(limits, Instant::EPOCH, UNIX)
}

fn key() -> PathKey {
    PathScope::default().key(SocketAddr::from(([192, 0, 2, 1], 443)), None)
}

fn capacity(window: u64, at: Instant) -> Capacity {
    Capacity {
        window,
        rtt: MINUTE / 1000,
        at,
    }
}

/// What another process wrote down so long ago: a window, and the capacity it had learnt before that.
fn kept(front: &Front, age: Duration, window: u64, capacity_age: Duration) -> PathRecord {
    let mut record = PathRecord::new(front.now() - age);
    record.windows.add(Average::Mean, window);
    record.samples = 1;
    record.capacity = Some(capacity(window, front.now() - capacity_age));
    record
}

fn average(record: &PathRecord) -> Option<f64> {
    record.windows.average(Average::Mean)
}

#[test]
fn what_is_older_than_the_process_is_as_old_as_it_is() {
    let front = front();
    front.absorb(&key(), kept(&front, 50 * MINUTE, 40_000, 55 * MINUTE), None);

    let at = |minutes| Instant::EPOCH + minutes * MINUTE;
    let early = front.recall(at(1), &key()).unwrap();
    assert_eq!(average(&early), Some(40_000.0));
    assert_eq!(early.capacity, Some(capacity(40_000, Instant::EPOCH)));
    assert_eq!(early.seen_at, Instant::EPOCH);
    let later = front.recall(at(5), &key()).unwrap();
    assert_eq!(
        later.capacity, None,
        "an hour old, five minutes of them in this process"
    );
    assert_eq!(front.recall(at(10), &key()), None);
}

#[test]
fn a_capacity_from_before_the_process_outlives_an_update() {
    let front = front();
    front.absorb(&key(), kept(&front, MINUTE, 40_000, 50 * MINUTE), None);
    let now = Instant::EPOCH + 5 * MINUTE;
    let taken = front.update(now, &key(), &mut |record| {
        assert!(record.capacity.is_some());
        record.windows.add(Average::Mean, 60_000);
    });
    assert_eq!(taken, None);
    let record = front.recall(now, &key()).unwrap();
    assert_eq!((average(&record), record.seen_at), (Some(50_000.0), now));
    assert!(record.capacity.is_some());
    let record = front.recall(now + 6 * MINUTE, &key()).unwrap();
    assert_eq!(
        record.capacity, None,
        "it was 50 minutes old when the process began"
    );
}

#[test]
fn moments_of_this_process_come_back_as_they_were() {
    let front = front();
    let now = Instant::EPOCH + MINUTE;
    front.update(now, &key(), &mut |record| {
        record.capacity = Some(capacity(70_000, now));
    });
    let record = front.recall(now + MINUTE, &key()).unwrap();
    assert_eq!(record.seen_at, now);
    assert_eq!(record.capacity, Some(capacity(70_000, now)));
}

#[test]
fn what_is_written_down_is_read_by_the_next_process() {
    let front = front();
    let now = Instant::EPOCH + 10 * MINUTE;
    front.update(now, &key(), &mut |record| {
        record.windows.add(Average::Mean, 40_000);
    });
    front.recall(now + 5 * MINUTE, &key());
    let (bytes, left) = front.value(&key()).unwrap();
    assert_eq!(left, LIFETIME - 5 * MINUTE);

    let read = |passed| {
        let limits = StoreLimits {
            lifetime: LIFETIME,
            ..StoreLimits::default()
        };
        let next = Front::new(limits, Instant::EPOCH, UNIX + 15 * MINUTE + passed);
        match next.decode(&bytes) {
            Decoded::Record(record) => Some(next.now() - record.seen_at),
            Decoded::Old => None,
            Decoded::Broken => panic!("broken"),
        }
    };
    assert_eq!(read(Duration::ZERO), Some(5 * MINUTE));
    assert_eq!(read(54 * MINUTE), Some(59 * MINUTE));
    assert_eq!(read(55 * MINUTE), None);
    assert_eq!(front.decode(b"no record"), Decoded::Broken);
}

#[test]
fn of_two_records_the_later_windows_and_the_newer_capacity_stay() {
    for (age, capacity_age, windows, newest) in [
        (MINUTE, MINUTE, 40_000.0, 40_000),
        (MINUTE, 9 * MINUTE, 40_000.0, 60_000),
        (9 * MINUTE, MINUTE, 60_000.0, 40_000),
        (9 * MINUTE, 9 * MINUTE, 60_000.0, 60_000),
    ] {
        let front = front();
        front.absorb(&key(), kept(&front, 5 * MINUTE, 60_000, 5 * MINUTE), None);
        front.absorb(&key(), kept(&front, age, 40_000, capacity_age), None);
        let record = front.recall(Instant::EPOCH, &key()).unwrap();
        assert_eq!(average(&record), Some(windows));
        assert_eq!(record.capacity.unwrap().window, newest);
        let seen_at = front.memory.recall(front.now(), &key()).unwrap().seen_at;
        assert_eq!(front.now() - seen_at, age.min(5 * MINUTE));
    }
}

#[test]
fn a_record_without_windows_takes_the_place_of_none_that_has_some() {
    let front = front();
    let mut empty = PathRecord::new(front.now() - MINUTE);
    front.update(Instant::EPOCH, &key(), &mut |record| {
        record.live = Some(70_000);
    });
    front.absorb(&key(), kept(&front, 5 * MINUTE, 60_000, 5 * MINUTE), None);
    let record = front.recall(Instant::EPOCH, &key()).unwrap();
    assert_eq!(
        (average(&record), record.live),
        (Some(60_000.0), Some(70_000))
    );

    empty.seen_at = front.now();
    front.absorb(&key(), empty, None);
    assert_eq!(front.recall(Instant::EPOCH, &key()), Some(record));
}

#[test]
fn what_was_taken_stays_taken() {
    let front = front();
    let kept_record = kept(&front, 5 * MINUTE, 60_000, 5 * MINUTE);
    front.absorb(&key(), kept_record.clone(), None);
    let taken = front.update(Instant::EPOCH, &key(), &mut |record| record.capacity = None);
    assert_eq!(taken, Some(front.now() - 5 * MINUTE));
    front.absorb(&key(), kept_record, taken);
    assert_eq!(front.recall(Instant::EPOCH, &key()).unwrap().capacity, None);

    let learnt_since = kept(&front, MINUTE, 60_000, MINUTE);
    front.absorb(&key(), learnt_since, taken);
    assert!(
        front
            .recall(Instant::EPOCH, &key())
            .unwrap()
            .capacity
            .is_some()
    );
}

#[test]
fn questions_are_counted() {
    let front = front();
    front.recall(Instant::EPOCH, &key());
    front.update(Instant::EPOCH, &key(), &mut |_| ());
    front.recall(Instant::EPOCH, &key());
    front.recall(Instant::EPOCH, &key());
    let statistics = front.statistics();
    assert_eq!(
        (statistics.hits, statistics.misses, statistics.records),
        (2, 1, 1)
    );
}
