mod fairness;
mod model;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::*;
use crate::coordination::history::{Average, PathScope};

const MINUTE: Duration = Duration::from_secs(60);

fn key(scope: PathScope, address: impl Into<IpAddr>, name: Option<&str>) -> PathKey {
    scope.key(SocketAddr::new(address.into(), 443), name)
}

fn put(store: &MemoryStore, now: Instant, key: &PathKey, window: u64) {
    store.update(now, key, &mut |record| {
        record.windows.add(Average::Mean, window);
        record.samples += 1;
    });
}

fn average(store: &MemoryStore, now: Instant, key: &PathKey) -> Option<f64> {
    store.recall(now, key)?.windows.average(Average::Mean)
}

fn limits(records: usize, of_one_network: usize) -> StoreLimits {
    StoreLimits {
        records,
        lifetime: MINUTE,
        of_one_network,
    }
}

#[test]
fn lookups_are_counted_as_hits_and_misses() {
    let store = MemoryStore::new(limits(10, 10));
    let (now, key) = (
        Instant::EPOCH,
        key(PathScope::Address, [192, 0, 2, 1], None),
    );
    assert_eq!(store.recall(now, &key), None);
    put(&store, now, &key, 1000);
    assert!(store.recall(now, &key).is_some());
    assert_eq!(store.recall(now + MINUTE, &key), None);
    let expected = StoreStatistics {
        records: 1,
        hits: 1,
        misses: 2,
        ..StoreStatistics::default()
    };
    assert_eq!(store.statistics(), expected);
}

#[test]
fn a_record_is_recalled_until_it_is_forgotten() {
    let store = MemoryStore::default();
    let now = Instant::EPOCH;
    let key = key(PathScope::Address, [192, 0, 2, 1], Some("a.example"));
    assert_eq!(store.recall(now, &key), None);
    put(&store, now, &key, 40_000);
    put(&store, now, &key, 60_000);
    assert_eq!(average(&store, now, &key), Some(50_000.0));
    store.forget(now, &key);
    assert_eq!(store.recall(now, &key), None);
    assert!(store.is_empty());
    store.forget(now, &key);
}

#[test]
fn an_update_sets_the_time_of_the_record() {
    let store = MemoryStore::default();
    let key = key(PathScope::Address, [192, 0, 2, 1], None);
    for seconds in [0, 7] {
        let now = Instant::EPOCH + Duration::from_secs(seconds);
        put(&store, now, &key, 40_000);
        assert_eq!(store.recall(now, &key).unwrap().seen_at, now);
    }
}

#[test]
fn an_expired_record_is_absent_and_an_update_replaces_it() {
    let store = MemoryStore::new(limits(8, 8));
    let key = key(PathScope::Address, [192, 0, 2, 1], None);
    let start = Instant::EPOCH;
    put(&store, start, &key, 40_000);
    let young = start + (MINUTE - Duration::from_nanos(1));
    assert_eq!(average(&store, young, &key), Some(40_000.0));
    let old = start + MINUTE;
    assert_eq!(store.recall(old, &key), None);
    put(&store, old, &key, 60_000);
    assert_eq!(average(&store, old, &key), Some(60_000.0));
    assert_eq!(store.recall(old, &key).unwrap().samples, 1);
}

#[test]
fn expired_records_are_removed_before_valid_ones_are_evicted() {
    let store = MemoryStore::new(limits(100, 100));
    let of = |network: u8| key(PathScope::default(), [10, 0, network, 1], None);
    for network in 0..100 {
        put(&store, Instant::EPOCH, &of(network), 40_000);
    }
    let later = Instant::EPOCH + MINUTE;
    for network in 100..150 {
        put(&store, later, &of(network), 40_000);
    }
    assert!(store.len() <= 50 + 1, "{}", store.len());
    for network in 100..150 {
        assert!(store.recall(later, &of(network)).is_some());
    }
}

#[test]
fn limits_hold_and_count_as_at_least_one() {
    for (records, of_one_network, kept) in [(8, 3, 3), (2, 3, 2), (0, 0, 1)] {
        let store = MemoryStore::new(limits(records, of_one_network));
        for host in 0..10 {
            let key = key(PathScope::Address, [192, 0, 2, host], None);
            put(&store, Instant::EPOCH, &key, 40_000);
            assert!(
                store.recall(Instant::EPOCH, &key).is_some(),
                "the newest stays"
            );
        }
        assert_eq!(store.len(), kept);
    }
}

#[test]
fn pages_list_every_valid_record_once() {
    let store = MemoryStore::new(limits(100, 100));
    let of = |host: u8| key(PathScope::Address, [192, 0, 2, host], Some("a.example"));
    let later = Instant::EPOCH + MINUTE / 2;
    for host in 0..10 {
        put(&store, Instant::EPOCH, &of(host), 40_000);
    }
    for host in (5..20).rev() {
        put(&store, later, &of(host), u64::from(host));
    }
    let list = |now| {
        let (mut listed, mut after) = (Vec::new(), 0);
        loop {
            let page = store.page(now, after, 3);
            assert!(page.len() <= 3);
            let Some(last) = page.last() else {
                return listed;
            };
            after = last.update;
            for updated in page {
                assert_eq!(store.recall(now, &updated.key), Some(updated.record));
                listed.push(updated.key);
            }
        }
    };
    let young: Vec<_> = (5..20).rev().map(of).collect();
    assert_eq!(
        list(later),
        [(0..5).map(of).collect(), young.clone()].concat()
    );
    assert_eq!(list(Instant::EPOCH + MINUTE), young);
    assert_eq!(list(later + MINUTE), []);
}
