//! The path whose congestion window is filled least.

use std::sync::Arc;

use marline::scheduling::path::{PathScheduler, PathView, Plan, Work, open};
use marline::settings::{Entry, Make};

/// Its name in settings.
pub(crate) static ENTRY: Entry<Make<dyn PathScheduler>, ()> = Entry::plain(
    "least_filled",
    "The path whose congestion window is filled least",
    |()| Arc::new(|| Box::new(LeastFilled)),
);

/// The path with the smallest part of its congestion window in flight.
#[derive(Clone, Copy, Debug)]
struct LeastFilled;

impl PathScheduler for LeastFilled {
    fn plan(&mut self, paths: &[PathView], work: &Work<'_>) -> Plan {
        let Some(stream) = work.streams.first() else {
            return Plan::Wait;
        };
        let filled = |path: &PathView| path.in_flight as f64 / path.window_bytes();
        let path = open(paths).min_by(|a, b| filled(a).total_cmp(&filled(b)));
        Plan::send(stream.id, path)
    }

    fn name(&self) -> &'static str {
        "least_filled"
    }
}
