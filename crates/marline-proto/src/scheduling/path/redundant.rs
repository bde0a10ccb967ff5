//! Everything on every path.

use std::sync::Arc;

use super::{Lrf, PathScheduler, PathView, Plan, Work};
use crate::settings::{Entry, Make};

/// Its name in settings.
pub(super) const ENTRY: Entry<Make<dyn PathScheduler>, ()> =
    Entry::plain("redundant", "Every packet on all paths", |()| {
        Arc::new(|| Box::new(Redundant))
    });

/// Sends each packet on the path with the lowest round-trip time that has room, and a copy on every other
/// path with room.
///
/// The delay is that of the path that is the fastest at the time, and the rate about that of the best path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl PathScheduler for Redundant {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        match Lrf.plan(paths, work) {
            Plan::Send { stream, path, .. } => Plan::Send {
                stream,
                path,
                copies: true,
            },
            plan => plan,
        }
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
