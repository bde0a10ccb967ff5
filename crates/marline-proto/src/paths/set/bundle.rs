//! Bundles of paths.

use marline_wire::PathId;

use super::PathSet;
use crate::coordination::bundle::MemberDirective;
use crate::paths::Slot;
use crate::paths::bundles::Joining;
use crate::time::Instant;

impl PathSet {
    /// Called when a path is validated: it joins the others between its addresses, if this end
    /// coordinates them. Returns the paths to [admit](Self::admit).
    pub(crate) fn join_bundle(&mut self, at: Slot) -> Option<Joining> {
        self.bundles.as_mut()?.join(&self.list, at)
    }

    /// Makes a path a member; returns the engine's directives, which are already applied.
    pub(crate) fn admit(&mut self, joining: &Joining, at: Slot) -> Vec<MemberDirective<PathId>> {
        match &mut self.bundles {
            Some(bundles) => bundles.admit(&mut self.list, joining.bundle, at),
            None => Vec::new(),
        }
    }

    /// Called when a path is abandoned, or leads to another host.
    pub(crate) fn leave_bundle(&mut self, at: Slot) {
        if let Some(bundles) = &mut self.bundles {
            bundles.leave(self.list[at].id);
            self.list[at].leave_bundle();
        }
    }

    /// Passes the next signal of a path's recovery to the engine of its bundle. Returns the directives, which
    /// are already applied; `None` if there was no signal.
    pub(crate) fn report_to_bundle(
        &mut self,
        now: Instant,
        at: Slot,
    ) -> Option<Vec<MemberDirective<PathId>>> {
        self.bundles.as_mut()?.report(now, &mut self.list, at)
    }
}
