use super::*;

fn scheduler(streams: &[(u64, u8, bool)]) -> Rfc9218 {
    let mut scheduler = Rfc9218::default();
    for &(id, urgency, incremental) in streams {
        scheduler.activate(StreamId::from(id), Priority::new(urgency, incremental));
    }
    scheduler
}

/// The streams that get the next `count` opportunities.
fn turns(scheduler: &mut Rfc9218, count: usize) -> Vec<u64> {
    (0..count)
        .filter_map(|_| {
            let id = scheduler.pick()?;
            scheduler.on_sent(id, 1200);
            Some(u64::from(id))
        })
        .collect()
}

#[test]
fn urgent_streams_go_first() {
    let mut scheduler = scheduler(&[(0, 7, false), (4, 3, false), (8, 0, true)]);
    assert_eq!(turns(&mut scheduler, 2), [8, 8]);
    scheduler.deactivate(StreamId::from(8));
    assert_eq!(turns(&mut scheduler, 2), [4, 4]);
    scheduler.deactivate(StreamId::from(4));
    assert_eq!(turns(&mut scheduler, 2), [0, 0]);
}

#[test]
fn sequential_streams_go_by_id() {
    let mut scheduler = scheduler(&[(8, 3, false), (0, 3, false), (4, 3, false)]);
    assert_eq!(turns(&mut scheduler, 3), [0, 0, 0]);
    scheduler.deactivate(StreamId::from(0));
    assert_eq!(turns(&mut scheduler, 2), [4, 4]);
    scheduler.activate(StreamId::from(0), Priority::default());
    assert_eq!(turns(&mut scheduler, 1), [0]);
}

#[test]
fn incremental_streams_take_turns() {
    let mut scheduler = scheduler(&[(0, 3, true), (4, 3, true), (8, 3, true)]);
    assert_eq!(turns(&mut scheduler, 7), [0, 4, 8, 0, 4, 8, 0]);
    scheduler.deactivate(StreamId::from(4));
    assert_eq!(turns(&mut scheduler, 3), [8, 0, 8]);
}

#[test]
fn incremental_and_sequential_streams_of_one_urgency_alternate() {
    let mut scheduler = scheduler(&[(0, 3, false), (4, 3, false), (8, 3, true), (12, 3, true)]);
    assert_eq!(turns(&mut scheduler, 6), [0, 8, 0, 12, 0, 8]);
}

#[test]
fn a_changed_priority_applies_at_once() {
    let mut scheduler = scheduler(&[(0, 3, false), (4, 3, false)]);
    scheduler.set_priority(StreamId::from(4), Priority::new(1, true));
    assert_eq!(turns(&mut scheduler, 2), [4, 4]);
    scheduler.set_priority(StreamId::from(4), Priority::new(7, false));
    assert_eq!(turns(&mut scheduler, 1), [0]);
    scheduler.set_priority(StreamId::from(99), Priority::new(0, false));
    assert_eq!(turns(&mut scheduler, 1), [0]);
}
