//! The caps of rules, and the bytes that their paths have carried.

use std::time::Duration;

use marline_proto::observe::PathStats;
use marline_proto::{Instant, PathId};

use super::policy::{PathRule, SpentBytes};

/// The longest and the shortest time between two updates. A path that is idle may carry a burst at any time.
const MAX_INTERVAL: Duration = Duration::from_millis(100);
const MIN_INTERVAL: Duration = Duration::from_millis(5);

/// The byte caps of a manager's rules, over all of its connections.
#[derive(Debug)]
pub(super) struct Budget(Vec<Allowance>);

#[derive(Debug)]
struct Allowance {
    cap: Option<u64>,
    spent: SpentBytes,
}

impl Budget {
    pub(super) fn new(rules: &[PathRule]) -> Self {
        let allowance = |rule: &PathRule| Allowance {
            cap: rule.cap_bytes,
            spent: rule.spent.clone(),
        };
        Self(rules.iter().map(allowance).collect())
    }

    /// Bytes that a rule has left; `None` without a cap.
    pub(super) fn left(&self, rule: usize) -> Option<u64> {
        let allowance = self.0.get(rule)?;
        Some(allowance.cap?.saturating_sub(allowance.spent.get()))
    }

    /// Bytes that a rule has spent.
    pub(super) fn spent(&self, rule: usize) -> u64 {
        self.0
            .get(rule)
            .map_or(0, |allowance| allowance.spent.get())
    }

    fn spend(&self, rule: usize, bytes: u64) {
        if let Some(allowance) = self.0.get(rule) {
            allowance.spent.add(bytes);
        }
    }
}

/// Bytes that a path has carried.
#[derive(Debug)]
struct PathBytes {
    path: PathId,
    bytes: u64,
}

/// Counts the bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Bytes that each path had carried at the last update.
    seen: Vec<PathBytes>,
    updated_at: Option<Instant>,
}

impl Meter {
    /// Charges the bytes that the paths have carried since the last update to their rules; returns when to
    /// update again, if any of these paths has a cap. `charged_rule` is the rule that a path's bytes count for.
    pub(super) fn update(
        &mut self,
        now: Instant,
        paths: &[PathStats],
        budget: &Budget,
        charged_rule: impl Fn(PathId) -> Option<usize>,
    ) -> Option<Instant> {
        let since = self.updated_at.replace(now).map(|before| now - before);
        let mut next: Option<Duration> = None;
        for stats in paths {
            let id = stats.id;
            let Some(rule) = charged_rule(id) else {
                continue;
            };
            let total = on_the_wire(stats);
            let seen = self.seen.iter_mut().find(|seen| seen.path == id);
            let new = match seen {
                Some(seen) => total - std::mem::replace(&mut seen.bytes, total).min(total),
                None => {
                    self.seen.push(PathBytes {
                        path: id,
                        bytes: total,
                    });
                    total
                }
            };
            budget.spend(rule, new);
            if let Some(left) = budget.left(rule) {
                let pause = since.map_or(MIN_INTERVAL, |since| pause(left, new, since));
                next = Some(next.map_or(pause, |next| next.min(pause)));
            }
        }
        next.map(|pause| now + pause)
    }
}

/// A quarter of the time in which `left` bytes are spent at the rate of the last `new` bytes, as the rate may
/// rise.
fn pause(left: u64, new: u64, since: Duration) -> Duration {
    if new == 0 {
        return MAX_INTERVAL;
    }
    let seconds = since.as_secs_f64() * left as f64 / new as f64 / 4.0;
    Duration::try_from_secs_f64(seconds)
        .unwrap_or(MAX_INTERVAL)
        .clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// Bytes of IP packets, which is what operators charge for.
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
    fn updates_become_more_frequent_as_the_cap_is_approached() {
        let time = Duration::from_millis(100);
        assert_eq!(pause(1_000_000, 0, time), MAX_INTERVAL);
        assert_eq!(pause(10_000_000, 1_000_000, time), MAX_INTERVAL);
        assert_eq!(pause(2_000_000, 1_000_000, time), time / 2);
        assert_eq!(pause(1_000_000, 1_000_000, time), time / 4);
        assert_eq!(pause(1, 1_000_000, time), MIN_INTERVAL);
        assert_eq!(pause(0, 1, time), MIN_INTERVAL);
    }

    #[test]
    fn bytes_left_of_a_cap_are_never_negative() {
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

    #[test]
    fn a_cap_counts_over_budgets_until_its_count_is_reset() {
        let rule = PathRule {
            spent: SpentBytes::new(600),
            .."a,cap=1kB".parse().unwrap()
        };
        let budgets = [(); 2].map(|()| Budget::new(std::slice::from_ref(&rule)));
        budgets[0].spend(0, 300);
        assert_eq!(
            budgets.each_ref().map(|budget| budget.left(0)),
            [Some(100); 2]
        );
        budgets[1].spend(0, 300);
        assert_eq!(budgets[0].left(0), Some(0));
        rule.spent.reset();
        assert_eq!(budgets[0].left(0), Some(1000));
    }
}
