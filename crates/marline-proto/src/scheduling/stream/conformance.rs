//! Rules that every stream scheduler must keep.

use std::collections::BTreeMap;

use marline_wire::StreamId;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::{Priority, StreamScheduler};

const STREAMS: u64 = 40;
const STEPS: usize = 20_000;
const PACKET: u64 = 1200;

/// Runs all checks on the schedulers that `make` creates.
///
/// # Panics
///
/// If a scheduler breaks a rule; the message names the rule.
pub fn conformance(make: impl Fn() -> Box<dyn StreamScheduler>) {
    is_empty_at_first(make().as_mut());
    picks_active_streams(make().as_mut());
    orders_as_it_picks(make().as_mut());
    serves_all(make().as_mut());
}

fn is_empty_at_first(scheduler: &mut dyn StreamScheduler) {
    assert!(!scheduler.name().is_empty(), "a scheduler has a name");
    assert_eq!(scheduler.pick(), None, "nothing is active");
    let unknown = StreamId::from(4);
    scheduler.deactivate(unknown);
    scheduler.finish(unknown);
    scheduler.set_priority(unknown, Priority::new(0, true));
    scheduler.on_sent(unknown, PACKET);
    assert_eq!(
        scheduler.pick(),
        None,
        "calls for unknown streams do nothing"
    );
}

/// Random calls: a picked stream is active, and a stream is picked while any is active.
fn picks_active_streams(scheduler: &mut dyn StreamScheduler) {
    let mut rng = Pcg32::seed_from_u64(1);
    let mut active = BTreeMap::new();
    for _ in 0..STEPS {
        let id = StreamId::from(rng.random_range(0..STREAMS));
        let priority = Priority::new(rng.random_range(0..8), rng.random());
        match rng.random_range(0..10_u32) {
            0 | 1 => {
                scheduler.activate(id, priority);
                active.insert(id, priority);
            }
            2 | 3 => {
                scheduler.deactivate(id);
                active.remove(&id);
            }
            4 => scheduler.set_priority(id, priority),
            5 => scheduler.on_sent(id, PACKET),
            6 => {
                scheduler.finish(id);
                active.remove(&id);
            }
            _ => {
                if let Some(picked) = scheduler.pick() {
                    scheduler.on_sent(picked, PACKET);
                }
            }
        }
        let picked = scheduler.pick();
        assert_eq!(
            picked.is_some(),
            !active.is_empty(),
            "a stream is picked if, and only if, one is active"
        );
        assert!(
            picked.is_none_or(|id| active.contains_key(&id)),
            "a picked stream is active"
        );
        assert_eq!(scheduler.pick(), picked, "a pick changes nothing");
    }
    for id in active.keys() {
        scheduler.deactivate(*id);
    }
    assert_eq!(scheduler.pick(), None, "no stream is left");
}

/// The order is that of successive picks with the earlier streams deactivated.
fn orders_as_it_picks(scheduler: &mut dyn StreamScheduler) {
    let mut rng = Pcg32::seed_from_u64(2);
    let mut order = Vec::new();
    for _ in 0..STEPS / 40 {
        let id = StreamId::from(rng.random_range(0..STREAMS));
        let priority = Priority::new(rng.random_range(0..8), rng.random());
        if rng.random() {
            scheduler.activate(id, priority);
        } else {
            scheduler.deactivate(id);
        }
        if let Some(picked) = scheduler.pick() {
            scheduler.on_sent(picked, PACKET);
        }
        let picked = scheduler.pick();
        order.clear();
        scheduler.order(0, &mut order);
        assert!(order.is_empty(), "no more than requested");
        scheduler.order(STREAMS as usize, &mut order);
        assert_eq!(order.first().copied(), picked, "the picked stream is first");
        assert_eq!(scheduler.pick(), picked, "a pick changes nothing");
        let mut once = order.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(
            once.len(),
            order.len(),
            "each stream appears once: {order:?}"
        );
    }
    for passed in order.drain(..) {
        assert_eq!(scheduler.pick(), Some(passed), "in order");
        scheduler.deactivate(passed);
    }
}

/// Streams of several packets are all served completely.
fn serves_all(scheduler: &mut dyn StreamScheduler) {
    let mut left: BTreeMap<_, _> = (0..STREAMS)
        .map(|n| (StreamId::from(n), n % 5 + 1))
        .collect();
    for id in left.keys() {
        let n = u64::from(*id);
        scheduler.activate(*id, Priority::new((n % 8) as u8, n % 3 == 0));
    }
    let total: u64 = left.values().sum();
    for _ in 0..total {
        let Some(id) = scheduler.pick() else {
            break;
        };
        scheduler.on_sent(id, PACKET);
        if let Some(packets) = left.get_mut(&id) {
            *packets -= 1;
            if *packets == 0 {
                left.remove(&id);
                scheduler.deactivate(id);
            }
        }
    }
    assert!(
        left.is_empty(),
        "streams that were never served to the end: {left:?}"
    );
}
