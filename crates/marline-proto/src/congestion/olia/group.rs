//! The paths of one connection, which see each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{Olia, OliaCoupling, OliaMetric, OliaPath};
use crate::congestion::{Controller, ControllerConfig, ControllerFactory};
use crate::limits::COUPLED_PATHS;

/// What the paths of one connection have in common: makes their controllers, and lets each see how the
/// others stand.
///
/// At most 16 paths are coupled; more are each on their own. A path leaves when its controller is dropped.
#[derive(Clone, Debug, Default)]
pub struct OliaGroup {
    shared: Arc<Shared>,
}

/// All are read and written by the one thread that drives the connection: atomics only make it safe to
/// hand that from thread to thread.
#[derive(Debug, Default)]
struct Shared {
    metric: OliaMetric,
    slots: [Slot; COUPLED_PATHS],
}

#[derive(Debug, Default)]
struct Slot {
    is_taken: AtomicBool,
    window: AtomicU64,
    /// Nanoseconds; 0 before the first sample.
    rtt: AtomicU64,
    between_losses: AtomicU64,
    since_loss: AtomicU64,
}

impl OliaGroup {
    /// A group without paths.
    pub fn new(metric: OliaMetric) -> Self {
        let shared = Shared {
            metric,
            ..Shared::default()
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A place for one more path.
    pub(super) fn join(&self) -> Member {
        let is_free = |slot: &Slot| !slot.is_taken.swap(true, Ordering::Relaxed);
        let place = self.shared.slots.iter().position(is_free);
        place.map_or_else(
            || Self::new(self.shared.metric).join(),
            |place| Member {
                shared: Arc::clone(&self.shared),
                place,
            },
        )
    }
}

impl ControllerFactory for OliaGroup {
    /// A controller for one more path of the connection.
    fn build(&self, config: ControllerConfig) -> Box<dyn Controller> {
        Box::new(Olia::new(config, self))
    }

    /// A group of the same kind without paths.
    fn of_connection(&self) -> Option<Arc<dyn ControllerFactory>> {
        Some(Arc::new(Self::new(self.shared.metric)))
    }
}

/// A path's place in the group.
#[derive(Debug)]
pub(super) struct Member {
    shared: Arc<Shared>,
    place: usize,
}

impl Member {
    /// Tells the others how the path stands.
    pub(super) fn tell(&self, path: &OliaPath) {
        let slot = &self.shared.slots[self.place];
        let rtt = u64::try_from(path.rtt.as_nanos()).unwrap_or(u64::MAX);
        for (cell, value) in [
            (&slot.window, path.window as u64),
            (&slot.rtt, rtt.max(1)),
            (&slot.between_losses, path.between_losses),
            (&slot.since_loss, path.since_loss),
        ] {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// What `path`, as the others were told, grows by in a round trip, in datagrams.
    pub(super) fn growth(&self, path: &OliaPath) -> f64 {
        let mut paths = [*path; COUPLED_PATHS];
        let mut count = 0;
        for rated in self.shared.slots.iter().filter_map(Slot::path) {
            paths[count] = rated;
            count += 1;
        }
        OliaCoupling::of(&paths[..count], self.shared.metric).growth(path)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let slot = &self.shared.slots[self.place];
        slot.rtt.store(0, Ordering::Relaxed);
        slot.is_taken.store(false, Ordering::Relaxed);
    }
}

impl Slot {
    /// The path, if it has a round-trip sample.
    fn path(&self) -> Option<OliaPath> {
        let rtt = self.rtt.load(Ordering::Relaxed);
        (rtt > 0).then(|| OliaPath {
            window: self.window.load(Ordering::Relaxed) as f64,
            rtt: Duration::from_nanos(rtt),
            between_losses: self.between_losses.load(Ordering::Relaxed),
            since_loss: self.since_loss.load(Ordering::Relaxed),
        })
    }
}
