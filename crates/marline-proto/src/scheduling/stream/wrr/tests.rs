use super::*;
use crate::limits::{IDLE_TREE_STREAMS, TREE_DEPTH};

mod random;

fn id(n: u64) -> StreamId {
    StreamId::from(n)
}

fn below(parent: u64, weight: u16) -> Priority {
    Priority::weighted(Some(id(parent)), weight)
}

fn top(weight: u16) -> Priority {
    Priority::weighted(None, weight)
}

fn scheduler(config: WrrConfig, streams: &[(u64, Priority)]) -> Wrr {
    let mut wrr = Wrr::new(config);
    for (stream, priority) in streams {
        wrr.activate(id(*stream), *priority);
    }
    wrr
}

/// The streams that get the next `count` opportunities.
fn turns(wrr: &mut Wrr, count: usize) -> Vec<u64> {
    let served = (0..count).map_while(|_| {
        let stream = wrr.pick()?;
        wrr.on_sent(stream, 1200);
        Some(u64::from(stream))
    });
    served.collect()
}

#[test]
fn a_turn_lasts_for_as_many_packets_as_the_weight() {
    let streams = [(0, top(128)), (4, top(32)), (8, top(1))];
    let mut wrr = scheduler(WrrConfig::SCATTERED, &streams);
    let round = [vec![0; 10], vec![4; 3], vec![8; 1]].concat();
    assert_eq!(turns(&mut wrr, 28), [round.clone(), round].concat());
    let mut wrr = scheduler(WrrConfig::WRR, &streams);
    let round = [vec![0; 128], vec![4; 32], vec![8; 1]].concat();
    assert_eq!(turns(&mut wrr, 161), round);
}

#[test]
fn urgency_determines_the_weight() {
    let streams = [(0, Priority::new(7, false)), (4, Priority::new(0, false))];
    let mut wrr = scheduler(WrrConfig::SCATTERED, &streams);
    assert_eq!(turns(&mut wrr, 14), [vec![0; 4], vec![4; 10]].concat());
}

#[test]
fn children_wait_until_their_parent_is_finished() {
    let streams = [(0, top(256)), (4, below(0, 256))];
    let mut strict = scheduler(WrrConfig::SCATTERED, &streams);
    assert_eq!(strict.pick(), Some(id(0)));
    strict.deactivate(id(0));
    assert_eq!(strict.pick(), None, "the parent may go on");
    strict.finish(id(0));
    assert_eq!(strict.pick(), Some(id(4)));
    strict.activate(id(0), top(256));
    assert_eq!(strict.pick(), Some(id(0)), "some of its data was lost");

    let lax = WrrConfig {
        strict_parent: false,
        ..WrrConfig::SCATTERED
    };
    let mut lax = scheduler(lax, &streams);
    assert_eq!(lax.pick(), Some(id(0)));
    lax.deactivate(id(0));
    assert_eq!(lax.pick(), Some(id(4)), "the parent has nothing to send");
}

#[test]
fn a_blocked_sibling_does_not_delay_the_others() {
    let mut wrr = scheduler(WrrConfig::SCATTERED, &[(0, top(256)), (4, top(256))]);
    assert_eq!(turns(&mut wrr, 3), [0; 3]);
    wrr.deactivate(id(0));
    assert_eq!(turns(&mut wrr, 25), [4; 25]);
    wrr.activate(id(0), top(256));
    assert_eq!(
        turns(&mut wrr, 12),
        [vec![4; 5], vec![0; 7]].concat(),
        "its seven turns remain"
    );
}

#[test]
fn new_streams_join_the_next_or_the_present_round() {
    let begun = |first_turn| {
        let config = WrrConfig {
            first_turn,
            ..WrrConfig::SCATTERED
        };
        let mut wrr = scheduler(config, &[(0, top(110)), (4, top(110))]);
        assert_eq!(turns(&mut wrr, 10), [0; 10]);
        wrr.activate(id(8), top(256));
        wrr.finish(id(0));
        turns(&mut wrr, 24)
    };
    assert_eq!(
        begun(FirstTurn::Wait),
        [vec![4; 10], vec![8; 10], vec![4; 4]].concat()
    );
    assert_eq!(
        begun(FirstTurn::Immediate),
        [vec![4; 10], vec![8; 10], vec![4; 4]].concat(),
        "the same, as it is the last stream"
    );
    let mut wrr = scheduler(
        WrrConfig {
            first_turn: FirstTurn::Immediate,
            ..WrrConfig::SCATTERED
        },
        &[(0, top(110))],
    );
    assert_eq!(turns(&mut wrr, 3), [0; 3]);
    wrr.activate(id(8), top(256));
    assert_eq!(
        turns(&mut wrr, 18),
        [vec![0; 7], vec![8; 10], vec![0; 1]].concat()
    );
}

#[test]
fn finished_parents_pass_their_turns_on() {
    let mut wrr = scheduler(
        WrrConfig::SCATTERED,
        &[
            (0, top(256)),
            (4, top(256)),
            (8, below(0, 1)),
            (12, below(0, 1)),
        ],
    );
    wrr.finish(id(0));
    let round = [vec![8; 10], vec![4; 10], vec![12; 10], vec![4; 10]].concat();
    assert_eq!(turns(&mut wrr, 40), round, "the parent's weight counts");
}

#[test]
fn a_stream_with_an_unknown_parent_is_below_the_root() {
    let wrr = scheduler(
        WrrConfig::SCATTERED,
        &[(0, below(99, 1)), (4, below(4, 1)), (8, below(0, 1))],
    );
    let depths = [0, 4, 8].map(|n| wrr.tree.depth(id(n)));
    assert_eq!(depths, [Some(1), Some(1), Some(2)]);
}

#[test]
fn the_depth_of_the_tree_is_limited() {
    let mut wrr = Wrr::scattered();
    wrr.activate(id(0), top(16));
    for n in 1..1000 {
        wrr.activate(id(n), below(n - 1, 16));
        wrr.finish(id(n - 1));
        assert_eq!(wrr.pick(), Some(id(n)), "only one is left");
        assert!(
            wrr.tree
                .depth(id(n))
                .is_some_and(|depth| depth <= TREE_DEPTH)
        );
    }
    assert!(wrr.tree.len() <= IDLE_TREE_STREAMS + usize::from(TREE_DEPTH));
}

#[test]
fn idle_streams_above_the_limit_are_forgotten() {
    let mut wrr = Wrr::scattered();
    for n in 0..10_000 {
        wrr.activate(id(n), top(16));
        if n % 2 == 0 {
            wrr.deactivate(id(n));
        } else {
            wrr.finish(id(n));
        }
        assert!(wrr.tree.len() <= IDLE_TREE_STREAMS + 1);
    }
    assert_eq!(wrr.pick(), None);
    let (old, young) = (0, 9999);
    wrr.activate(id(20_000), below(old, 16));
    wrr.activate(id(20_001), below(young, 16));
    assert_eq!(
        wrr.tree.depth(id(20_000)),
        Some(1),
        "its parent was removed"
    );
    assert_eq!(wrr.tree.depth(id(20_001)), Some(2), "its parent is kept");
}

#[test]
fn lighter_siblings_get_longer_turns_when_the_heaviest_is_done() {
    let mut wrr = scheduler(WrrConfig::SCATTERED, &[(0, top(110)), (4, top(256))]);
    assert_eq!(turns(&mut wrr, 14), [vec![0; 4], vec![4; 10]].concat());
    wrr.finish(id(4));
    assert_eq!(turns(&mut wrr, 10), [0; 10]);
    wrr.set_priority(id(0), top(1));
    assert_eq!(turns(&mut wrr, 10), [0; 10]);
}
