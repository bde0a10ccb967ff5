//! One more member comes to others that are at work: what they have is shared out.

use super::super::member::{Directive, MemberView};
use super::{Bundle, Member, Part};
use crate::observe::events::{BundleAction, BundlePhase, BundleTrigger};

impl<M: Copy + PartialEq> Bundle<M> {
    /// Takes in a member whose owner knows that it goes the way of the others. What they have is shared
    /// out, so that together they have no more than before; the first brings its own window.
    ///
    /// Unlike [`join`](Self::join), nobody has to say how many there will be. Rates are not shared out: of
    /// controllers that have one, the newcomer alone begins with its part of the window that it has.
    pub fn admit(
        &mut self,
        key: M,
        view: &mut dyn FnMut(M) -> Option<MemberView>,
    ) -> Vec<(M, Directive)> {
        if !self.takes(key) {
            return Vec::new();
        }
        let Some(newcomer) = view(key) else {
            return Vec::new();
        };
        let mut part = self.those_that_stand(view);
        let others = part.views.len();
        part.places.push(self.members.len());
        part.views.push(newcomer);
        self.members.push(Member::new(key));
        self.joined += 1;

        let has_left = |view: &MemberView| !view.in_slow_start && !view.rate_based;
        if others > 0 && part.views[..others].iter().all(has_left) {
            // There is nothing left to search for.
            self.engine.exit();
        }
        let windows = self.divided(&part.views);
        let sharers = part.places.len();
        if self.config.fair {
            for &place in &part.places {
                self.set_share(place, sharers);
            }
        }
        let (fair, share) = (self.config.fair, 1.0 / sharers as f64);
        let avoids = self.engine.phase() == BundlePhase::CongestionAvoidance;
        let stops = avoids && newcomer.in_slow_start && !newcomer.rate_based;
        let why = (BundleTrigger::Joined, BundleAction::Split, None);
        self.directives(&part, why, &windows, |place, out| {
            out.share = fair.then_some(share);
            out.slow_start = (place == others && stops).then_some(false);
        })
    }

    /// The members that have found no end of their way.
    fn those_that_stand(&self, view: &mut dyn FnMut(M) -> Option<MemberView>) -> Part {
        let mut part = Part {
            places: Vec::with_capacity(self.members.len() + 1),
            views: Vec::with_capacity(self.members.len() + 1),
        };
        for (place, member) in self.members.iter().enumerate() {
            if let Some(seen) = view(member.key).filter(|_| !member.collapsed) {
                part.places.push(place);
                part.views.push(seen);
            }
        }
        part
    }

    /// The windows once the last of `views` has its part: of what the others have, or, where that says
    /// nothing, of what it would begin with on its own.
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
