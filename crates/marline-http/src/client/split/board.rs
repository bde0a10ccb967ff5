//! What is left to ask for.

use std::collections::VecDeque;
use std::ops::Range;

use http::HeaderValue;

/// No piece that is handed out is smaller, but for the last: the header of its request and response, and
/// what both ends do for them, cost less than a hundredth of it.
const SMALLEST: u64 = 64 * 1024;

/// Pieces a lane that everybody could be handed of what is left. A lane that is so many times slower than
/// the average still ends with the others.
const PIECES: u64 = 4;

/// What the workers of one object share.
pub(super) struct Board {
    /// Bytes that nobody has asked for.
    left: VecDeque<Range<u64>>,
    /// Which lanes have not failed.
    live: Vec<bool>,
    /// Names the representation, once something has come.
    pub(super) validator: Option<HeaderValue>,
}

impl Board {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            left: VecDeque::new(),
            live: vec![true; lanes],
            validator: None,
        }
    }

    /// Somebody has to ask for these bytes, before all others.
    pub(super) fn give_back(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.left.push_front(range);
        }
    }

    /// `lane` has failed and owes `range`; returns those that live.
    pub(super) fn lose(&mut self, lane: usize, range: Range<u64>) -> Vec<usize> {
        self.live[lane] = false;
        self.give_back(range);
        let lanes = self.live.iter().enumerate();
        lanes
            .filter_map(|(lane, live)| live.then_some(lane))
            .collect()
    }

    /// The next piece for `lane`, on which about `ahead` bytes arrive between a request and its response.
    pub(super) fn take(&mut self, lane: usize, ahead: u64) -> Option<Range<u64>> {
        if !self.live[lane] {
            return None;
        }
        let left: u64 = self.left.iter().map(|range| range.end - range.start).sum();
        let lanes = self.live.iter().filter(|live| **live).count() as u64;
        let piece = (left / (PIECES * lanes)).max(ahead);
        let piece = piece.min(left.div_ceil(lanes)).max(SMALLEST);
        let range = self.left.pop_front()?;
        let end = range.end.min(range.start.saturating_add(piece));
        self.give_back(end..range.end);
        Some(range.start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lanes that take turns are handed of `size` bytes.
    fn pieces(size: u64, lanes: usize, ahead: u64) -> Vec<Range<u64>> {
        let mut board = Board::new(lanes);
        board.give_back(0..size);
        (0..lanes)
            .cycle()
            .map_while(|lane| board.take(lane, ahead))
            .collect()
    }

    #[test]
    fn pieces_shrink_and_leave_nothing_out() {
        for (size, lanes, ahead) in [
            (0, 3, 0),
            (1, 3, 9),
            (2_400_000, 3, 0),
            (6_000_000, 4, 300_000),
            (1 << 40, 16, 1 << 20),
        ] {
            let pieces = pieces(size, lanes, ahead);
            let mut next = 0;
            let mut last = u64::MAX;
            for piece in &pieces {
                assert_eq!(piece.start, next);
                next = piece.end;
                let len = piece.end - piece.start;
                assert!(len > 0 && len <= last);
                assert!(len >= SMALLEST || piece.end == size);
                last = len;
            }
            assert_eq!(next, size);
            assert!(pieces.len() < 1000, "{}", pieces.len());
        }
    }

    #[test]
    fn pieces_last_until_the_next_can_arrive() {
        let pieces = pieces(6_000_000, 3, 700_000);
        let len = |piece: &Range<u64>| piece.end - piece.start;
        assert!(
            pieces[..5].iter().all(|piece| len(piece) == 700_000),
            "{pieces:?}"
        );
    }

    #[test]
    fn what_a_lane_owes_goes_to_others() {
        let mut board = Board::new(2);
        assert_eq!(board.lose(0, 7..9), [1]);
        assert_eq!(board.take(0, 0), None);
        assert_eq!(board.take(1, 0), Some(7..9));
        assert_eq!(board.take(1, 0), None);
        assert_eq!(board.lose(0, 5..5), [1]);
        assert_eq!(board.take(1, 0), None);
        assert!(board.lose(1, 7..9).is_empty());
    }
}
