//! The table evicts the same records as a model that scans all of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::prefix::Prefix;

/// Records, least recently updated first.
#[derive(Default)]
struct Naive(Vec<(PathKey, PathRecord)>);

/// The networks that contain a key, the widest first; as many for every key, so that they can be compared.
fn networks(key: &PathKey) -> Vec<Option<Prefix>> {
    let network = key.network;
    let of = |bits: u8| network.map(|n| Prefix::new(n.address(), bits.min(n.bits())));
    match network.map(|n| n.address()) {
        Some(IpAddr::V4(_)) => vec![of(24), of(255), of(255)],
        Some(IpAddr::V6(_)) => vec![of(48), of(64), of(255)],
        None => vec![None; 3],
    }
}

impl Naive {
    fn find(&self, now: Instant, key: &PathKey) -> Option<&PathRecord> {
        let (_, record) = self.0.iter().find(|(known, _)| known == key)?;
        (!record.is_expired(now, MINUTE)).then_some(record)
    }

    fn update(&mut self, now: Instant, key: &PathKey, window: u64, limits: &StoreLimits) {
        let swept = self.0.iter().take(2);
        let swept = swept.take_while(|(_, record)| record.is_expired(now, MINUTE));
        let swept = swept.count();
        self.0.drain(..swept);

        let fresh = PathRecord::new(now);
        let mut record = self.find(now, key).cloned().unwrap_or(fresh);
        self.0.retain(|(known, _)| known != key);
        record.windows.add(Average::Mean, window);
        record.samples += 1;
        record.seen_at = now;
        self.0.push((key.clone(), record));

        let own = networks(key)[0];
        let mut of_own: Vec<usize> = (0..self.0.len()).collect();
        of_own.retain(|n| networks(&self.0[*n].0)[0] == own);
        if of_own.len() > limits.of_one_network {
            self.evict(of_own, 1);
        } else if self.0.len() > limits.records {
            self.evict((0..self.0.len()).collect(), 0);
        }
    }

    /// Evicts one of the records at `places`, which share `depth` networks.
    fn evict(&mut self, mut places: Vec<usize>, depth: usize) {
        for depth in depth..3 {
            let mut branches = BTreeMap::<_, Vec<usize>>::new();
            for place in places {
                let networks = networks(&self.0[place].0);
                // A key without a narrower network is a branch of its own.
                let is_alone = depth > 0 && networks[depth] == networks[depth - 1];
                let branch = (networks[depth], is_alone.then_some(place));
                branches.entry(branch).or_default().push(place);
            }
            let fullest = branches
                .into_values()
                .max_by_key(|places| (places.len(), Reverse(places.last().copied())));
            places = fullest.unwrap();
        }
        self.0.remove(places[0]);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Put(PathKey, u64),
    Forget(PathKey),
    Wait(u64),
}

fn any_key() -> impl Strategy<Value = PathKey> {
    let v4 = (0..3_u8, 0..3_u8).prop_map(|(network, host)| IpAddr::from([10, 0, network, host]));
    let v6 = (0..2_u16, 0..2_u16, 0..2_u16).prop_map(|(site, subnet, host)| {
        IpAddr::from([0x2001, 0xdb8, site, subnet, 0, 0, 0, host])
    });
    let scope = prop_oneof![
        6 => Just(PathScope::Address),
        2 => Just(PathScope::Prefix { v4: 24, v6: 48 }),
        1 => Just(PathScope::Global),
    ];
    let name = prop::option::of(prop_oneof![Just("a"), Just("b"), Just("c")]);
    (scope, prop_oneof![v4, v6], name).prop_map(|(scope, ip, name)| key(scope, ip, name))
}

fn any_op(forgets: bool) -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (any_key(), 0..100_000_u64).prop_map(|(key, window)| Op::Put(key, window)),
        u32::from(forgets) => any_key().prop_map(Op::Forget),
        2 => (0..20_u64).prop_map(Op::Wait),
    ]
}

/// Applies `ops` to a table and to the model, and compares them after each.
fn compare(ops: Vec<Op>, limits: StoreLimits) {
    let store = MemoryStore::new(limits);
    let mut naive = Naive::default();
    let mut now = Instant::EPOCH;
    for op in ops {
        match op {
            Op::Put(key, window) => {
                put(&store, now, &key, window);
                naive.update(now, &key, window, &limits);
                assert!(store.recall(now, &key).is_some());
            }
            Op::Forget(key) => {
                store.forget(now, &key);
                naive.0.retain(|(known, _)| *known != key);
            }
            Op::Wait(seconds) => now += Duration::from_secs(seconds),
        }
        assert!(store.len() <= limits.records);
        assert_eq!(store.len(), naive.0.len());
        for (key, _) in &naive.0 {
            assert_eq!(store.recall(now, key), naive.find(now, key).cloned());
        }
    }
}

proptest! {
    #[test]
    fn the_same_records_are_evicted_as_by_a_scan(
        ops in prop::collection::vec(any_op(false), 1..80),
        records in 1..30_usize,
        of_one_network in 1..12_usize,
    ) {
        compare(ops, limits(records, of_one_network));
    }

    #[test]
    fn below_its_limits_the_table_is_a_map(ops in prop::collection::vec(any_op(true), 1..80)) {
        compare(ops, limits(1000, 1000));
    }

    #[test]
    fn no_network_loses_a_record_to_one_with_as_many(
        ops in prop::collection::vec((any_key(), 0..100_000_u64), 1..80),
        records in 1..30_usize,
    ) {
        let store = MemoryStore::new(limits(records, 1000));
        let mut known: Vec<PathKey> = Vec::new();
        for (key, window) in ops {
            let count = |of: &PathKey| {
                known.iter().filter(|key| networks(key)[0] == networks(of)[0]).count()
            };
            let is_new = !known.contains(&key);
            put(&store, Instant::EPOCH, &key, window);
            for lost in known.iter().filter(|key| store.recall(Instant::EPOCH, key).is_none()) {
                let is_own = networks(lost)[0] == networks(&key)[0];
                prop_assert!(is_new && (is_own || count(lost) > count(&key)));
            }
            if is_new {
                known.push(key);
            }
            known.retain(|key| store.recall(Instant::EPOCH, key).is_some());
        }
    }
}
