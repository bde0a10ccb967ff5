//! No client can evict the records of others.

use std::net::Ipv6Addr;

use super::*;

const NOW: Instant = Instant::EPOCH;

/// A store for 1000 records, 100 of one network, in which 200 networks have two each.
fn shared(scope: PathScope) -> (MemoryStore, Vec<PathKey>) {
    let store = MemoryStore::new(limits(1000, 100));
    let v4 = (0..100_u8).map(|n| IpAddr::from([10, 0, n, 1]));
    let v6 = (0..100_u16).map(|n| IpAddr::from([0x2001, 0xdb8, n, 0, 0, 0, 0, 1]));
    let addresses: Vec<_> = v4.chain(v6).collect();
    let names = ["a.example", "b.example"];
    let keys = addresses
        .iter()
        .flat_map(|address| names.map(|name| key(scope, *address, Some(name))))
        .collect::<Vec<_>>();
    for key in &keys {
        put(&store, NOW, key, 50_000);
    }
    (store, keys)
}

/// Updates the keys of `flood`, which one client can cause, and checks that all others keep their records.
fn assert_others_keep_their_records(flood: impl Fn(PathScope, u32) -> PathKey) {
    for scope in [PathScope::default(), PathScope::Address] {
        let (store, keys) = shared(scope);
        for n in 0..5000 {
            put(&store, NOW, &flood(scope, n), 1);
        }
        assert!(store.len() <= keys.len() + 100);
        for key in &keys {
            assert_eq!(average(&store, NOW, key), Some(50_000.0), "{key:?}");
        }
    }
}

#[test]
fn a_client_with_many_server_names_evicts_only_its_own_records() {
    assert_others_keep_their_records(|scope, n| {
        key(scope, [192, 0, 2, 1], Some(&format!("{n}.example")))
    });
}

#[test]
fn a_client_with_an_ipv4_network_evicts_only_its_own_records() {
    assert_others_keep_their_records(|scope, n| {
        let name = format!("{}.example", n / 256);
        key(scope, [192, 0, 2, n as u8], Some(&name))
    });
}

#[test]
fn a_client_with_an_ipv6_network_evicts_only_its_own_records() {
    let base = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 0).to_bits();
    assert_others_keep_their_records(|scope, n| {
        key(scope, Ipv6Addr::from_bits(base + u128::from(n)), None)
    });
    assert_others_keep_their_records(|scope, n| {
        let subnet = u128::from(n) << 64;
        key(scope, Ipv6Addr::from_bits(base + subnet), Some("a.example"))
    });
}

#[test]
fn a_full_table_evicts_from_the_network_with_most_records() {
    let store = MemoryStore::new(limits(300, 200));
    let name = |n: u32| format!("{n}.example");
    let crowd: Vec<_> = (0..200)
        .map(|n| key(PathScope::default(), [192, 0, 2, 1], Some(&name(n))))
        .collect();
    let few: Vec<_> = (0..200)
        .map(|n| key(PathScope::default(), [10, 0, n, 1], None))
        .collect();
    for key in crowd.iter().chain(&few) {
        put(&store, NOW, key, 50_000);
    }
    assert_eq!(store.len(), 300);
    let is_kept = |key: &&PathKey| store.recall(NOW, key).is_some();
    assert_eq!(few.iter().filter(is_kept).count(), 200);
    assert!(
        crowd[100..].iter().all(|key| is_kept(&key)),
        "the newest stay"
    );
}

#[test]
fn a_neighbor_in_the_same_network_keeps_its_records() {
    let store = MemoryStore::new(limits(1000, 100));
    let quiet = |host| key(PathScope::Address, [192, 0, 2, host], Some("a.example"));
    for host in 2..50 {
        put(&store, NOW, &quiet(host), 50_000);
    }
    for n in 0..5000 {
        let flood = key(
            PathScope::Address,
            [192, 0, 2, 1],
            Some(&format!("{n}.example")),
        );
        put(&store, NOW, &flood, 1);
    }
    for host in 2..50 {
        assert_eq!(average(&store, NOW, &quiet(host)), Some(50_000.0));
    }
}

#[test]
fn another_subnet_of_the_same_site_keeps_its_records() {
    let store = MemoryStore::new(limits(1000, 100));
    let address = |subnet: u16, host: u16| [0x2001, 0xdb8, 1, subnet, 0, 0, 0, host];
    for subnet in 1..40 {
        let key = key(PathScope::Address, address(subnet, 1), None);
        put(&store, NOW, &key, 50_000);
    }
    for host in 0..5000 {
        put(
            &store,
            NOW,
            &key(PathScope::Address, address(0, host), None),
            1,
        );
    }
    for subnet in 1..40 {
        let key = key(PathScope::Address, address(subnet, 1), None);
        assert_eq!(average(&store, NOW, &key), Some(50_000.0));
    }
}
