use super::*;

const MB: u64 = 1_000_000;

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

/// Connections on which responses take 50 ms, each with an assignment of `size` bytes.
fn assignments(pooled_connections: usize, size: u64) -> Assignments {
    let mut assignments = Assignments::new(pooled_connections, Ranges::Handed);
    for pooled in 0..pooled_connections {
        let start = pooled as u64 * size;
        assert_eq!(
            assignments.assign(pooled, start..start + size, at(0)),
            pooled
        );
        assignments.answered(pooled, at(0), at(50));
    }
    assignments
}

/// Lets bytes of these assignments arrive every 50 ms, from `from` until `until`.
fn flow(assignments: &mut Assignments, bytes: &[(usize, u64)], from: u64, until: u64) {
    for now in (from..until).step_by(50) {
        for &(assignment, bytes) in bytes {
            assignments.arrived(assignment, bytes, at(now));
        }
    }
}

fn rest(assignments: &Assignments, assignment: usize) -> u64 {
    let range = assignments.remaining(assignment);
    range.end - range.start
}

#[test]
fn a_handed_over_part_lets_both_lanes_end_together() {
    let mut assignments = assignments(2, 3 * MB);
    flow(&mut assignments, &[(0, 150_000), (1, 50_000)], 100, 1100);
    assignments.complete(0);
    let assignment = rest(&assignments, 1);
    let NextStep::Fetch(taken) = assignments.next(0, at(1100)) else {
        panic!("2 MB at 1 MB/s are left");
    };
    // 2 MB at 1 MB/s; from 50 ms on at 4 MB/s.
    let (kept, part) = (rest(&assignments, 1), rest(&assignments, taken));
    assert_eq!(kept + part, assignment);
    assert_eq!(assignments.remaining(taken), 6 * MB - part..6 * MB);
    assert!((450_000..650_000).contains(&kept), "{kept}");
    // No bytes have arrived since.
    assert_eq!(
        assignments.next(0, at(1110)),
        NextStep::Wait(at(50) - at(0))
    );
    // Bytes beyond the new end are not accepted.
    let last = assignments.arrived(1, kept - 1, at(1500));
    assert_eq!((last.bytes, last.stop), (kept - 1, false));
    let last = assignments.arrived(1, 7, at(1510));
    assert_eq!((last.bytes, last.stop), (1, true));
    assert_eq!(last.offset, 6 * MB - part - 1);
}

#[test]
fn ranges_that_end_soon_are_not_handed_over() {
    // At 1 MB/s and 50 ms per response, ranges that end soon are not worth another request.
    for (left, taken) in [(60_000, false), (150_000, false), (400_000, true)] {
        let mut assignments = assignments(2, 2 * MB);
        flow(&mut assignments, &[(0, 50_000), (1, 50_000)], 100, 1000);
        let enough = rest(&assignments, 1) - left;
        assignments.assigned[1].rest.start += enough;
        assignments.complete(0);
        let next = assignments.next(0, at(1000));
        assert_eq!(
            matches!(next, NextStep::Fetch(_)),
            taken,
            "{left}: {next:?}"
        );
    }
}

#[test]
fn equal_ranges_are_not_handed_over() {
    let mut assignments = Assignments::new(2, Ranges::Equal);
    assignments.assign(1, 0..9 * MB, at(0));
    assert_eq!(assignments.next(0, at(100_000)), NextStep::End);
}

#[test]
fn ranges_of_coordinated_lanes_are_handed_over_only_when_stalled() {
    for coordinated in [false, true] {
        let mut assignments = Assignments::new(2, Ranges::Auto);
        assignments.coordinated = coordinated;
        for (pooled, range) in [(0, 0..MB), (1, MB..9 * MB)] {
            assignments.assign(pooled, range, at(0));
            assignments.answered(pooled, at(0), at(50));
        }
        flow(&mut assignments, &[(0, 50_000), (1, 50_000)], 100, 500);
        assignments.complete(0);
        let next = assignments.next(0, at(500));
        assert_eq!(matches!(next, NextStep::Fetch(_)), !coordinated, "{next:?}");
        if coordinated {
            assert!(matches!(assignments.next(0, at(1500)), NextStep::Fetch(_)));
            assert_eq!(rest(&assignments, 1), 0);
        }
    }
}

#[test]
fn the_rest_of_a_stalled_lane_is_handed_over() {
    let mut assignments = assignments(3, MB);
    flow(
        &mut assignments,
        &[(0, 50_000), (1, 50_000), (2, 50_000)],
        100,
        500,
    );
    assignments.complete(0);
    let rest_of_pooled = assignments.remaining(1);
    flow(&mut assignments, &[(2, 1)], 500, 1460);
    // The last bytes on connection 1 arrived at 450 ms.
    assert_eq!(assignments.stall_limit(), STALL_TIME);
    assert_eq!(assignments.take_from_stalled(0, STALL_TIME, at(1440)), None);
    assert_eq!(
        assignments.take_from_stalled(0, STALL_TIME, at(1450)),
        Some(rest_of_pooled)
    );
    assert_eq!(rest(&assignments, 1), 0);
    assert_eq!(assignments.take_from_stalled(0, STALL_TIME, at(1450)), None);
    // The connection gets no other range until bytes arrive on it.
    assert!(matches!(assignments.next(1, at(1460)), NextStep::Wait(_)));
    let late = assignments.arrived(1, 10, at(1470));
    assert_eq!((late.bytes, late.stop), (0, true));
    assert!(!assignments.pooled_connections[1].stalled);
}

#[test]
fn a_range_without_a_response_is_halved_once() {
    let mut assignments = Assignments::new(2, Ranges::Handed);
    assignments.assign(0, 0..MB, at(0));
    assignments.assign(1, MB..2 * MB, at(0));
    assignments.answered(0, at(0), at(50));
    flow(&mut assignments, &[(0, 100_000)], 100, 600);
    assignments.complete(0);
    let NextStep::Fetch(taken) = assignments.next(0, at(600)) else {
        panic!("1 MB is missing");
    };
    let part = rest(&assignments, taken);
    assert!((400_000..500_000).contains(&part), "{part}");
    assignments.complete(taken);
    assert!(matches!(assignments.next(0, at(800)), NextStep::Wait(_)));
    assert!(matches!(assignments.next(0, at(1000)), NextStep::Fetch(_)));
    assert_eq!(rest(&assignments, 1), 0);
}

#[test]
fn the_rest_of_a_failed_lane_is_assigned_to_others() {
    for ranges in [Ranges::Equal, Ranges::Handed] {
        let mut assignments = Assignments::new(3, ranges);
        let assignment = assignments.assign(0, 0..MB, at(0));
        assignments.fail(assignment);
        assert_eq!(assignments.working().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(assignments.next(0, at(0)), NextStep::End);
        let mut next = 0;
        for pooled in [1, 2].into_iter().cycle() {
            let NextStep::Fetch(assignment) = assignments.next(pooled, at(0)) else {
                break;
            };
            let range = assignments.remaining(assignment);
            assert_eq!(range.start, next);
            assert!(range.end - range.start >= MIN_HANDED_BYTES || range.end == MB);
            next = range.end;
        }
        assert_eq!(next, MB);
    }
}
