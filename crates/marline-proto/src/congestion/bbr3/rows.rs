//! Losses of consecutive packets.

/// The packets that were lost last.
const REMEMBERED: usize = 8;

/// Finds losses that continue a row. Packets of several senders that share a controller are numbered together, and each
/// sender detects its own losses, so that those of one row come in any order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostRows {
    /// The numbers of the latest, in a ring.
    lost: [Option<u64>; REMEMBERED],
    next: usize,
}

impl LostRows {
    /// Packet `number` is lost: returns whether one beside it was lost as well.
    pub(super) fn on_lost(&mut self, number: u64) -> bool {
        let neighbours = [number.checked_sub(1), number.checked_add(1)];
        let continues = neighbours
            .iter()
            .flatten()
            .any(|&neighbour| self.lost.contains(&Some(neighbour)));
        self.lost[self.next] = Some(number);
        self.next = (self.next + 1) % REMEMBERED;
        continues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_several_senders_report_in_parts_is_one() {
        let mut rows = LostRows::default();
        let reported = [10, 13, 11, 14, 12];
        assert_eq!(
            reported.map(|number| rows.on_lost(number)),
            [false, false, true, true, true]
        );
        assert!(!rows.on_lost(20));
    }
}
