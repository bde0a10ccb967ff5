//! Lowest round-trip time first, as in Linux's MPTCP.

use std::sync::Arc;

use super::view::open;
use super::{PathScheduler, PathView, Plan, Work};
use crate::settings::{Entry, Make};

/// Its name in settings.
pub(super) const ENTRY: Entry<Make<dyn PathScheduler>, ()> = Entry::plain(
    "lrf",
    "The path with the lowest round-trip time that has room",
    |()| Arc::new(|| Box::new(Lrf)),
);

/// The path with the lowest smoothed round-trip time that has room.
///
/// Among equal paths, the lowest ID wins; paths without a sample come last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lrf;

impl PathScheduler for Lrf {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        let Some(stream) = work.streams.first() else {
            return Plan::Wait;
        };
        Plan::send(stream.id, open(paths).min_by_key(|path| path.delay()))
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
