//! Adding a member to others that already send: their windows are divided anew.

use super::super::member::{MemberDirective, MemberView};
use super::{Bundle, DecisionAction, DecisionCause, EnginePhase, Member, Participants, Reason};

impl<M: Copy + PartialEq> Bundle<M> {
    /// Adds a member whose owner knows that it shares the others' path. Their windows are divided anew,
    /// so that together they have no more than before; the first member keeps its own window.
    ///
    /// Unlike [`join`](Self::join), the number of members need not be announced. Rates are not divided:
    /// a joining member whose controller has one begins with its part of its own window, and the others stay as
    /// they are.
    pub fn admit(
        &mut self,
        key: M,
        view: &mut dyn FnMut(M) -> Option<MemberView>,
    ) -> Vec<MemberDirective<M>> {
        if !self.accepts(key) {
            return Vec::new();
        }
        let Some(joining) = view(key) else {
            return Vec::new();
        };
        let mut participants = self.members_not_collapsed(view);
        let others = participants.views.len();
        participants.push(self.members.len(), joining);
        self.members.push(Member::new(key));
        self.joined += 1;

        let has_left = |view: &MemberView| !view.in_slow_start && !view.rate_based;
        if others > 0 && participants.views[..others].iter().all(has_left) {
            // The others have found the capacity already.
            self.engine.exit();
        }
        let windows = self.divided(&participants.views);
        let sharers = participants.members.len();
        if self.config.fair {
            for &member in &participants.members {
                self.set_share(member, sharers);
            }
        }
        let (fair, share) = (self.config.fair, 1.0 / sharers as f64);
        let avoids = self.engine.phase() == EnginePhase::CongestionAvoidance;
        let stops = avoids && joining.in_slow_start && !joining.rate_based;
        let reason = Reason {
            cause: DecisionCause::Joined,
            action: DecisionAction::Split,
            affected: None,
        };
        self.directives(&participants, reason, &windows, |index, out| {
            out.share = fair.then_some(share);
            out.slow_start = (index == others && stops).then_some(false);
        })
    }

    /// The members whose windows persistent congestion has not collapsed.
    fn members_not_collapsed(&self, view: &mut dyn FnMut(M) -> Option<MemberView>) -> Participants {
        let mut participants = Participants::with_capacity(self.members.len() + 1);
        for (index, member) in self.members.iter().enumerate() {
            if let Some(seen) = view(member.key).filter(|_| !member.collapsed) {
                participants.push(index, seen);
            }
        }
        participants
    }

    /// The windows after the last of `views` has its part: of the sum of the others' windows or, if there
    /// are none or rates are in use, of its own initial window.
    fn divided(&self, views: &[MemberView]) -> Vec<f64> {
        let mut windows: Vec<f64> = views.iter().map(|view| view.window as f64).collect();
        let sharers = windows.len() as f64;
        let Some((own, others)) = windows.split_last_mut() else {
            return windows;
        };
        if !self.config.split_initial_window {
            return windows;
        }
        if others.is_empty() || views.iter().any(|view| view.rate_based) {
            *own /= self.members.len() as f64;
        } else {
            let each = others.iter().sum::<f64>() / sharers;
            windows.fill(each);
        }
        windows
    }
}
