//! Bytes that paths may carry, and have carried.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use marline_proto::observe::PathStats;
use marline_proto::{Instant, PathId};

use super::policy::PathRule;

/// The longest and the shortest time between two looks at what is left. A path that is idle may carry a burst
/// at any time.
const LONGEST: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(5);

/// What the rules of a manager allow, over all of its connections.
#[derive(Debug)]
pub(super) struct Budget(Vec<Purse>);

#[derive(Debug)]
struct Purse {
    cap: Option<u64>,
    spent: AtomicU64,
}

impl Budget {
    pub(super) fn new(rules: &[PathRule]) -> Self {
        let purse = |rule: &PathRule| Purse {
            cap: rule.cap_bytes,
            spent: AtomicU64::new(0),
        };
        Self(rules.iter().map(purse).collect())
    }

    /// Bytes that a rule has left; `None` without a cap.
    pub(super) fn left(&self, rule: usize) -> Option<u64> {
        let purse = self.0.get(rule)?;
        Some(purse.cap?.saturating_sub(purse.spent.load(Relaxed)))
    }

    /// Bytes that a rule has spent.
    pub(super) fn spent(&self, rule: usize) -> u64 {
        self.0
            .get(rule)
            .map_or(0, |purse| purse.spent.load(Relaxed))
    }

    fn spend(&self, rule: usize, bytes: u64) {
        if let Some(purse) = self.0.get(rule) {
            purse.spent.fetch_add(bytes, Relaxed);
        }
    }
}

/// Counts what one connection spends.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// What each path had carried at the last look.
    seen: Vec<(PathId, u64)>,
    looked: Option<Instant>,
}

impl Meter {
    /// Takes what the paths have carried since the last look out of the budget; returns when to look again,
    /// if any of these paths has a cap. `payer_of` tells for which rule a path counts.
    pub(super) fn look(
        &mut self,
        now: Instant,
        paths: &[PathStats],
        budget: &Budget,
        payer_of: impl Fn(PathId) -> Option<usize>,
    ) -> Option<Instant> {
        let since = self.looked.replace(now).map(|before| now - before);
        let mut next: Option<Duration> = None;
        for stats in paths {
            let id = stats.id;
            let Some(rule) = payer_of(id) else { continue };
            let total = on_the_wire(stats);
            let before = self.seen.iter_mut().find(|(seen, _)| *seen == id);
            let new = match before {
                Some((_, before)) => total - std::mem::replace(before, total).min(total),
                None => {
                    self.seen.push((id, total));
                    total
                }
            };
            budget.spend(rule, new);
            if let Some(left) = budget.left(rule) {
                let pause = since.map_or(SHORTEST, |since| pause(left, new, since));
                next = Some(next.map_or(pause, |next| next.min(pause)));
            }
        }
        next.map(|pause| now + pause)
    }
}

/// A quarter of the time in which `left` bytes are spent at the rate of the last `new` bytes: rates may double.
fn pause(left: u64, new: u64, since: Duration) -> Duration {
    if new == 0 {
        return LONGEST;
    }
    let seconds = since.as_secs_f64() * left as f64 / new as f64 / 4.0;
    Duration::try_from_secs_f64(seconds)
        .unwrap_or(LONGEST)
        .clamp(SHORTEST, LONGEST)
}

/// Bytes of IP packets, as those count who charge for them.
fn on_the_wire(stats: &PathStats) -> u64 {
    let header = match stats.remote.ip().to_canonical() {
        std::net::IpAddr::V4(_) => 20 + 8,
        std::net::IpAddr::V6(_) => 40 + 8,
    };
    let [sent, received] = [&stats.udp_sent, &stats.udp_received];
    sent.bytes + received.bytes + (sent.datagrams + received.datagrams) * header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_closer_as_the_end_does() {
        let time = Duration::from_millis(100);
        assert_eq!(pause(1_000_000, 0, time), LONGEST);
        assert_eq!(pause(10_000_000, 1_000_000, time), LONGEST);
        assert_eq!(pause(2_000_000, 1_000_000, time), time / 2);
        assert_eq!(pause(1_000_000, 1_000_000, time), time / 4);
        assert_eq!(pause(1, 1_000_000, time), SHORTEST);
        assert_eq!(pause(0, 1, time), SHORTEST);
    }

    #[test]
    fn purses_are_shared_and_never_overdrawn() {
        let rules = ["a,cap=1kB", "b"].map(|text| text.parse().unwrap());
        let budget = Budget::new(&rules);
        budget.spend(0, 700);
        budget.spend(1, 700);
        assert_eq!([budget.left(0), budget.left(1)], [Some(300), None]);
        budget.spend(0, 700);
        assert_eq!([budget.left(0), budget.left(1)], [Some(0), None]);
        assert_eq!(budget.spent(0), 1400);
        assert_eq!([budget.left(7), Some(budget.spent(7))], [None, Some(0)]);
    }
}
