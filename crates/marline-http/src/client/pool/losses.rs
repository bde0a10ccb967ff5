//! The losses that a client observes.

use marline::PathStats;

/// The packet number from which on skipped numbers are equally far apart.
const LONGEST_SKIP: u64 = 1 << 16;

/// The first number that a sender skips.
const FIRST_SKIP: u64 = 64;

/// Losses that a client can observe: gaps in the numbers of the server's packets, and its own packets that were lost.
#[derive(Default)]
pub(super) struct Losses {
    sent: u64,
    lost: u64,
    peer_sent: u64,
    peer_missing: u64,
}

impl Losses {
    /// Counts a path.
    pub(super) fn count(&mut self, path: &PathStats) {
        self.sent += path.packets_sent;
        self.lost += path.packets_lost;
        self.count_peer(path.peer_packets_sent, path.peer_packets_missing);
    }

    /// Counts what the peer sent on a path, of which `missing` packets have not arrived.
    fn count_peer(&mut self, sent: u64, missing: u64) {
        self.peer_sent += sent;
        self.peer_missing += missing.saturating_sub(skippable(sent));
    }

    /// The worse of both directions.
    pub(super) fn share(&self) -> Option<f64> {
        let share = |lost: u64, sent: u64| (sent > 0).then(|| lost as f64 / sent as f64);
        let down = share(self.peer_missing, self.peer_sent);
        let up = share(self.lost, self.sent);
        [down, up].into_iter().flatten().reduce(f64::max)
    }
}

/// The number of `sent` packet numbers that a sender may have skipped on purpose (RFC 9000, section 21.4). It is the
/// most that the senders of this crate skip: the first after 64 packets, each next one after as many as came before it,
/// and from 65,536 on after as many.
fn skippable(sent: u64) -> u64 {
    let doublings = (sent.clamp(FIRST_SKIP, LONGEST_SKIP) / FIRST_SKIP).ilog2();
    1 + u64::from(doublings) + sent / LONGEST_SKIP
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of `sent` packet numbers that are skipped if each distance is `times` the number before it, up to the
    /// longest.
    fn skipped(sent: u64, times: u64) -> u64 {
        let next = |last: &u64| Some(last + times * (*last).min(LONGEST_SKIP));
        let numbers = std::iter::successors(Some(FIRST_SKIP * times), next);
        numbers.take_while(|number| *number < sent).count() as u64
    }

    fn share(connections: u64, sent: u64, missing: u64) -> f64 {
        let mut losses = Losses::default();
        for _ in 0..connections {
            losses.count_peer(sent, missing);
        }
        losses.share().unwrap()
    }

    #[test]
    fn numbers_that_are_skipped_on_purpose_are_no_losses() {
        for sent in [300, 3_000, 30_000, 3_000_000] {
            for connections in [1, 5] {
                let missing = skipped(sent, 1);
                assert!(missing > 0, "{sent}");
                assert_eq!(share(connections, sent, missing), 0.0, "{sent}");
            }
        }
    }

    #[test]
    fn one_loss_in_a_hundred_is_seen_even_if_few_numbers_are_skipped() {
        for sent in [300, 3_000, 30_000] {
            for connections in [1, 5] {
                let seen = share(connections, sent, sent / 100 + skipped(sent, 2));
                // The score of table I is that of 1 %.
                assert!(seen > 1e-3 && seen <= 1e-2, "{sent}: {seen}");
            }
        }
    }

    #[test]
    fn the_worse_direction_counts() {
        let mut losses = Losses {
            sent: 100,
            lost: 5,
            ..Losses::default()
        };
        losses.count_peer(1000, 20);
        assert_eq!(losses.share(), Some(0.05));
        assert_eq!(Losses::default().share(), None);
    }
}
