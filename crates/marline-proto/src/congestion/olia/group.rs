//! The paths of one connection, and the state that they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{Olia, OliaCoupling, OliaMetric, OliaPath};
use crate::congestion::{Controller, ControllerConfig, ControllerFactory};
use crate::limits::COUPLED_PATHS;

/// The coupled paths of one connection: makes their controllers, and shares the state of each with the others.
///
/// At most 16 paths are coupled; further ones are independent. A path leaves when its controller is dropped.
#[derive(Clone, Debug, Default)]
pub struct OliaGroup {
    shared: Arc<Shared>,
}

/// Only the thread that drives the connection reads and writes it: atomics make it possible to move the
/// connection to another thread.
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

    /// Joins one more path.
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

    /// An empty group of the same kind.
    fn of_connection(&self) -> Option<Arc<dyn ControllerFactory>> {
        Some(Arc::new(Self::new(self.shared.metric)))
    }
}

/// A path's membership in the group.
#[derive(Debug)]
pub(super) struct Member {
    shared: Arc<Shared>,
    place: usize,
}

impl Member {
    /// Publishes the state of the path to the others.
    pub(super) fn publish(&self, path: &OliaPath) {
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

    /// Growth of `path`, as published, in datagrams a round trip.
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
