//! Bundles of paths.

use marline_wire::PathId;

use super::PathSet;
use crate::coordination::bundle::MemberDirective;
use crate::paths::Slot;
use crate::paths::bundles::Joining;
use crate::time::Instant;

impl PathSet {
    /// A path is valid: it joins those beside it, if this end coordinates them. Returns who is to be
    /// [admitted](Self::admit).
    pub(crate) fn join_bundle(&mut self, at: Slot) -> Option<Joining> {
        self.bundles.as_mut()?.join(&self.list, at)
    }

    /// A path becomes a member; returns what the engine has the members do, which they have done.
    pub(crate) fn admit(&mut self, joining: &Joining, at: Slot) -> Vec<MemberDirective<PathId>> {
        match &mut self.bundles {
            Some(bundles) => bundles.admit(&mut self.list, joining.bundle, at),
            None => Vec::new(),
        }
    }

    /// A path is abandoned, or leads to another host.
    pub(crate) fn leave_bundle(&mut self, at: Slot) {
        if let Some(bundles) = &mut self.bundles {
            bundles.leave(self.list[at].id);
            self.list[at].leave_bundle();
        }
    }

    /// Takes the next thing that the recovery of a path has shown to the engine of its bundle. Returns what that
    /// has the members do, which they have done; `None` if there was nothing.
    pub(crate) fn report_to_bundle(
        &mut self,
        now: Instant,
        at: Slot,
    ) -> Option<Vec<MemberDirective<PathId>>> {
        self.bundles.as_mut()?.report(now, &mut self.list, at)
    }
}
