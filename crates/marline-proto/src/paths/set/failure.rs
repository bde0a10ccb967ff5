//! Paths that do not answer, and their replacement by others.

use std::time::Duration;

use super::PathSet;
use crate::paths::Slot;
use crate::paths::detection::{Detection, Finding};
use crate::recovery::Outcome;
use crate::time::Instant;

impl PathSet {
    /// Handles an authenticated packet on a path.
    pub(crate) fn on_received(&mut self, now: Instant, at: Slot) {
        if self.is_multipath() {
            self.list[at].on_received(now);
        }
    }

    /// Handles an acknowledgment of packets that a path carried. Returns whether it answers again after it did not.
    pub(crate) fn on_answer(&mut self, at: Slot, outcome: &Outcome) -> bool {
        self.is_multipath() && self.list[at].on_answer(outcome)
    }

    /// The send time from which on an acknowledgment received on `carrier` shows that the path of its packet
    /// works; `None` is any time. While the path does not answer, packets that arrived earlier may be
    /// acknowledged on another path.
    pub(crate) fn proven_from(&self, at: Slot, carrier: Slot) -> Option<Instant> {
        let is_on_another = self.is_multipath() && carrier != at;
        self.list[at]
            .liveness
            .unanswered_since()
            .filter(|_| is_on_another)
    }

    /// Called when a path works again: returns the suspected paths whose data it takes over.
    pub(crate) fn relieved_by(&mut self, now: Instant, by: Slot) -> Vec<Slot> {
        let is_only_one = self.list.others_live(by).next().is_none();
        let is_failing = |at: &Slot| self.list[*at].is_open() && !self.list[*at].is_live();
        let failing: Vec<Slot> = self.list.slots().filter(is_failing).collect();
        if is_only_one {
            for &at in &failing {
                self.list[at].liveness.on_company(now);
            }
        }
        failing
    }

    /// Maximum interval between probes of a path, while there are others.
    pub(crate) fn probe_interval(&self) -> Option<Duration> {
        let extension = self.extension.as_ref()?;
        (!self.list.is_single()).then_some(extension.config.probe_interval)
    }

    /// Whether an ACK-only packet of `at` is to be made ack-eliciting.
    pub(crate) fn wants_ack_of_acks(&self, now: Instant, at: Slot) -> bool {
        self.is_multipath() && !self.list.is_single() && self.list[at].wants_ack_of_acks(now)
    }

    fn detection(&self, max_ack_delay: Duration) -> Option<Detection<'_>> {
        Some(Detection {
            list: &self.list,
            config: &self.extension.as_ref()?.config,
            max_ack_delay,
        })
    }

    /// Time of the next possible finding about a path.
    pub(crate) fn next_finding(&self, at: Slot, max_ack_delay: Duration) -> Option<Instant> {
        self.detection(max_ack_delay)?.next_timeout(at)
    }

    /// Whether data that a path has in flight when its probe timeout expires is sent on another path.
    pub(crate) fn reroutes_on_timeout(&self) -> bool {
        self.is_multipath() && self.list[self.list.best()].is_live()
    }

    /// The finding about a path at `now`; its effects within the set are applied.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        at: Slot,
        max_ack_delay: Duration,
    ) -> Option<Finding> {
        let finding = self.detection(max_ack_delay)?.find(now, at)?;
        match finding {
            Finding::GivenUp => {}
            Finding::Suspect => {
                let path = &mut self.list[at];
                path.liveness.suspect(now);
                path.recovery.request_probe();
            }
            Finding::Unclear => {
                self.list[at].liveness.ask();
                let others: Vec<Slot> = self.list.others_live(at).collect();
                for other in others {
                    let path = &mut self.list[other];
                    path.ping_due |= !path.space.sent.has_ack_eliciting_in_flight();
                }
            }
            Finding::Idle => self.list[at].ping_due = true,
        }
        Some(finding)
    }
}
