use std::net::SocketAddr;

use marline_proto::coordination::history::{Average, PathScope};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const UNIX: Duration = Duration::from_secs(1_800_000_000);
const LIFETIME: Duration = Duration::from_secs(3600);

fn cache() -> Cache {
    let limits = StoreLimits {
        lifetime: LIFETIME,
        ..StoreLimits::default()
    };
    Cache::new(limits, Instant::EPOCH, UNIX)
}

fn key() -> PathKey {
    PathScope::default().key(SocketAddr::from(([192, 0, 2, 1], 443)), None)
}

fn capacity(window: u64, at: Instant) -> Capacity {
    Capacity {
        window,
        rtt: MINUTE / 1000,
        at,
        model: None,
    }
}

/// A record that another process stored `age` ago: a window, and a capacity of age `capacity_age`.
fn stored(cache: &Cache, age: Duration, window: u64, capacity_age: Duration) -> PathRecord {
    let mut record = PathRecord::new(cache.now() - age);
    record.windows.add(Average::Mean, window);
    record.samples = 1;
    record.capacity = Some(capacity(window, cache.now() - capacity_age));
    record
}

fn average(record: &PathRecord) -> Option<f64> {
    record.windows.average(Average::Mean)
}

#[test]
fn records_older_than_the_process_keep_their_age() {
    let cache = cache();
    cache.merge(
        &key(),
        stored(&cache, 50 * MINUTE, 40_000, 55 * MINUTE),
        None,
    );

    let at = |minutes| Instant::EPOCH + minutes * MINUTE;
    let early = cache.recall(at(1), &key()).unwrap();
    assert_eq!(average(&early), Some(40_000.0));
    assert_eq!(early.capacity, Some(capacity(40_000, Instant::EPOCH)));
    assert_eq!(early.seen_at, Instant::EPOCH);
    let later = cache.recall(at(5), &key()).unwrap();
    assert_eq!(
        later.capacity, None,
        "an hour old, of which five minutes in this process"
    );
    assert_eq!(cache.recall(at(10), &key()), None);
}

#[test]
fn a_capacity_older_than_the_process_survives_an_update() {
    let cache = cache();
    cache.merge(&key(), stored(&cache, MINUTE, 40_000, 50 * MINUTE), None);
    let now = Instant::EPOCH + 5 * MINUTE;
    let taken = cache.update(now, &key(), &mut |record| {
        assert!(record.capacity.is_some());
        record.windows.add(Average::Mean, 60_000);
    });
    assert_eq!(taken, None);
    let record = cache.recall(now, &key()).unwrap();
    assert_eq!((average(&record), record.seen_at), (Some(50_000.0), now));
    assert!(record.capacity.is_some());
    let record = cache.recall(now + 6 * MINUTE, &key()).unwrap();
    assert_eq!(
        record.capacity, None,
        "it was 50 minutes old when the process began"
    );
}

#[test]
fn times_of_this_process_are_returned_unchanged() {
    let cache = cache();
    let now = Instant::EPOCH + MINUTE;
    cache.update(now, &key(), &mut |record| {
        record.capacity = Some(capacity(70_000, now));
    });
    let record = cache.recall(now + MINUTE, &key()).unwrap();
    assert_eq!(record.seen_at, now);
    assert_eq!(record.capacity, Some(capacity(70_000, now)));
}

#[test]
fn an_encoded_record_ages_until_the_next_process_decodes_it() {
    let cache = cache();
    let now = Instant::EPOCH + 10 * MINUTE;
    cache.update(now, &key(), &mut |record| {
        record.windows.add(Average::Mean, 40_000);
    });
    cache.recall(now + 5 * MINUTE, &key());
    let StoredValue { bytes, left } = cache.value(&key()).unwrap();
    assert_eq!(left, LIFETIME - 5 * MINUTE);

    let read = |passed| {
        let limits = StoreLimits {
            lifetime: LIFETIME,
            ..StoreLimits::default()
        };
        let next = Cache::new(limits, Instant::EPOCH, UNIX + 15 * MINUTE + passed);
        match next.decode(&bytes) {
            Decoded::Record(record) => Some(next.now() - record.seen_at),
            Decoded::Expired => None,
            Decoded::Malformed => panic!("malformed"),
        }
    };
    assert_eq!(read(Duration::ZERO), Some(5 * MINUTE));
    assert_eq!(read(54 * MINUTE), Some(59 * MINUTE));
    assert_eq!(read(55 * MINUTE), None);
    assert_eq!(cache.decode(b"no record"), Decoded::Malformed);
}

#[test]
fn merge_keeps_the_later_windows_and_the_newer_capacity() {
    for (age, capacity_age, windows, newest) in [
        (MINUTE, MINUTE, 40_000.0, 40_000),
        (MINUTE, 9 * MINUTE, 40_000.0, 60_000),
        (9 * MINUTE, MINUTE, 60_000.0, 40_000),
        (9 * MINUTE, 9 * MINUTE, 60_000.0, 60_000),
    ] {
        let cache = cache();
        cache.merge(&key(), stored(&cache, 5 * MINUTE, 60_000, 5 * MINUTE), None);
        cache.merge(&key(), stored(&cache, age, 40_000, capacity_age), None);
        let record = cache.recall(Instant::EPOCH, &key()).unwrap();
        assert_eq!(average(&record), Some(windows));
        assert_eq!(record.capacity.unwrap().window, newest);
        let seen_at = cache.memory.recall(cache.now(), &key()).unwrap().seen_at;
        assert_eq!(cache.now() - seen_at, age.min(5 * MINUTE));
    }
}

#[test]
fn merge_does_not_replace_windows_by_none() {
    let cache = cache();
    let mut empty = PathRecord::new(cache.now() - MINUTE);
    cache.update(Instant::EPOCH, &key(), &mut |record| {
        record.live = Some(70_000);
    });
    cache.merge(&key(), stored(&cache, 5 * MINUTE, 60_000, 5 * MINUTE), None);
    let record = cache.recall(Instant::EPOCH, &key()).unwrap();
    assert_eq!(
        (average(&record), record.live),
        (Some(60_000.0), Some(70_000))
    );

    empty.seen_at = cache.now();
    cache.merge(&key(), empty, None);
    assert_eq!(cache.recall(Instant::EPOCH, &key()), Some(record));
}

#[test]
fn merge_does_not_restore_a_capacity_that_was_taken() {
    let cache = cache();
    let stored_record = stored(&cache, 5 * MINUTE, 60_000, 5 * MINUTE);
    cache.merge(&key(), stored_record.clone(), None);
    let taken = cache.update(Instant::EPOCH, &key(), &mut |record| record.capacity = None);
    assert_eq!(taken, Some(cache.now() - 5 * MINUTE));
    cache.merge(&key(), stored_record, taken);
    assert_eq!(cache.recall(Instant::EPOCH, &key()).unwrap().capacity, None);

    let learnt_since = stored(&cache, MINUTE, 60_000, MINUTE);
    cache.merge(&key(), learnt_since, taken);
    assert!(
        cache
            .recall(Instant::EPOCH, &key())
            .unwrap()
            .capacity
            .is_some()
    );
}

#[test]
fn hits_and_misses_are_counted() {
    let cache = cache();
    cache.recall(Instant::EPOCH, &key());
    cache.update(Instant::EPOCH, &key(), &mut |_| ());
    cache.recall(Instant::EPOCH, &key());
    cache.recall(Instant::EPOCH, &key());
    let statistics = cache.statistics();
    assert_eq!(
        (statistics.hits, statistics.misses, statistics.records),
        (2, 1, 1)
    );
}
