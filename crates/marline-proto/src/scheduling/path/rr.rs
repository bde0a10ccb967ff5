//! Round robin.

use std::sync::Arc;

use marline_wire::PathId;

use super::view::open;
use super::{PathScheduler, PathView, Plan, Work};
use crate::settings::{Entry, Make};

/// Its name in settings.
pub(super) const ENTRY: Entry<Make<dyn PathScheduler>, ()> =
    Entry::plain("rr", "One path after the other", |()| {
        Arc::new(|| Box::new(Rr::default()))
    });

/// Sends one packet on each path that has room, in turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rr {
    last: Option<PathId>,
}

impl Rr {
    /// A scheduler whose next turn is that of the path after `last`.
    pub const fn after(last: Option<PathId>) -> Self {
        Self { last }
    }
}

impl PathScheduler for Rr {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        let Some(stream) = work.streams.first() else {
            return Plan::Wait;
        };
        let is_next = |path: &&PathView| self.last.is_none_or(|last| path.id > last);
        let path = open(paths).find(is_next).or_else(|| open(paths).next());
        self.last = path.map(|path| path.id).or(self.last);
        Plan::send(stream.id, path)
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
