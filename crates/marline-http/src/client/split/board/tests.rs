use super::*;

const MB: u64 = 1_000_000;

fn at(millis: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(millis)
}

/// Lanes on which responses take 50 ms, each with a claim of `size` bytes.
fn board(lanes: usize, size: u64) -> Board {
    let mut board = Board::new(lanes, Ranges::Handed);
    for lane in 0..lanes {
        let start = lane as u64 * size;
        assert_eq!(board.claim(lane, start..start + size, at(0)), lane);
        board.answered(lane, at(0), at(50));
    }
    board
}

/// Every 50 ms, so many bytes of each of these claims, until `until`.
fn flow(board: &mut Board, bytes: &[(usize, u64)], from: u64, until: u64) {
    for now in (from..until).step_by(50) {
        for &(claim, bytes) in bytes {
            board.arrived(claim, bytes, at(now));
        }
    }
}

fn rest(board: &Board, claim: usize) -> u64 {
    let range = board.rest_of(claim);
    range.end - range.start
}

#[test]
fn handing_over_lets_both_lanes_end_together() {
    let mut board = board(2, 3 * MB);
    flow(&mut board, &[(0, 150_000), (1, 50_000)], 100, 1100);
    board.complete(0);
    let claim = rest(&board, 1);
    let Next::Fetch(taken) = board.next(0, at(1100)) else {
        panic!("2 MB at 1 MB/s are left");
    };
    // 2 MB at 1 MB/s; from 50 ms on at 4 MB/s.
    let (kept, part) = (rest(&board, 1), rest(&board, taken));
    assert_eq!(kept + part, claim);
    assert_eq!(board.rest_of(taken), 6 * MB - part..6 * MB);
    assert!((450_000..650_000).contains(&kept), "{kept}");
    // Nothing has come since.
    assert_eq!(board.next(0, at(1110)), Next::Wait(at(50) - at(0)));
    // What is beyond its new end is of no use.
    let last = board.arrived(1, kept - 1, at(1500));
    assert_eq!((last.bytes, last.stop), (kept - 1, false));
    let last = board.arrived(1, 7, at(1510));
    assert_eq!((last.bytes, last.stop), (1, true));
    assert_eq!(last.offset, 6 * MB - part - 1);
}

#[test]
fn ranges_that_end_soon_are_not_handed_over() {
    // 1 MB/s, 50 ms there and back: what a quarter of a round trip would save is not worth a request.
    for (left, taken) in [(60_000, false), (150_000, false), (400_000, true)] {
        let mut board = board(2, 2 * MB);
        flow(&mut board, &[(0, 50_000), (1, 50_000)], 100, 1000);
        let enough = rest(&board, 1) - left;
        board.claims[1].rest.start += enough;
        board.complete(0);
        let next = board.next(0, at(1000));
        assert_eq!(matches!(next, Next::Fetch(_)), taken, "{left}: {next:?}");
    }
}

#[test]
fn equal_ranges_are_not_handed_over() {
    let mut board = Board::new(2, Ranges::Equal);
    board.claim(1, 0..9 * MB, at(0));
    assert_eq!(board.next(0, at(100_000)), Next::End);
}

#[test]
fn ranges_of_coordinated_lanes_are_handed_over_only_when_silent() {
    for coordinated in [false, true] {
        let mut board = Board::new(2, Ranges::Auto);
        board.coordinated = coordinated;
        for (lane, range) in [(0, 0..MB), (1, MB..9 * MB)] {
            board.claim(lane, range, at(0));
            board.answered(lane, at(0), at(50));
        }
        flow(&mut board, &[(0, 50_000), (1, 50_000)], 100, 500);
        board.complete(0);
        let next = board.next(0, at(500));
        assert_eq!(matches!(next, Next::Fetch(_)), !coordinated, "{next:?}");
        if coordinated {
            assert!(matches!(board.next(0, at(1500)), Next::Fetch(_)));
            assert_eq!(rest(&board, 1), 0);
        }
    }
}

#[test]
fn all_of_a_silent_lane_is_handed_over() {
    let mut board = board(3, MB);
    flow(
        &mut board,
        &[(0, 50_000), (1, 50_000), (2, 50_000)],
        100,
        500,
    );
    board.complete(0);
    let owed = board.rest_of(1);
    flow(&mut board, &[(2, 1)], 500, 1460);
    // The last on lane 1 came at 450 ms.
    assert_eq!(board.silence(), SILENCE);
    assert_eq!(board.take_from_silent(0, SILENCE, at(1440)), None);
    assert_eq!(board.take_from_silent(0, SILENCE, at(1450)), Some(owed));
    assert_eq!(rest(&board, 1), 0);
    assert_eq!(board.take_from_silent(0, SILENCE, at(1450)), None);
    // It gets nothing more, unless something comes after all.
    assert!(matches!(board.next(1, at(1460)), Next::Wait(_)));
    let late = board.arrived(1, 10, at(1470));
    assert_eq!((late.bytes, late.stop), (0, true));
    assert!(!board.lanes[1].silent);
}

#[test]
fn a_range_without_a_response_is_halved_once() {
    let mut board = Board::new(2, Ranges::Handed);
    board.claim(0, 0..MB, at(0));
    board.claim(1, MB..2 * MB, at(0));
    board.answered(0, at(0), at(50));
    flow(&mut board, &[(0, 100_000)], 100, 600);
    board.complete(0);
    let Next::Fetch(taken) = board.next(0, at(600)) else {
        panic!("nothing has come of 1 MB");
    };
    let part = rest(&board, taken);
    assert!((400_000..500_000).contains(&part), "{part}");
    board.complete(taken);
    assert!(matches!(board.next(0, at(800)), Next::Wait(_)));
    assert!(matches!(board.next(0, at(1000)), Next::Fetch(_)));
    assert_eq!(rest(&board, 1), 0);
}

#[test]
fn what_a_failed_lane_leaves_goes_to_others() {
    for ranges in [Ranges::Equal, Ranges::Handed] {
        let mut board = Board::new(3, ranges);
        let claim = board.claim(0, 0..MB, at(0));
        board.lose(claim);
        assert_eq!(board.live().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(board.next(0, at(0)), Next::End);
        let mut next = 0;
        for lane in [1, 2].into_iter().cycle() {
            let Next::Fetch(claim) = board.next(lane, at(0)) else {
                break;
            };
            let range = board.rest_of(claim);
            assert_eq!(range.start, next);
            assert!(range.end - range.start >= SMALLEST || range.end == MB);
            next = range.end;
        }
        assert_eq!(next, MB);
    }
}
