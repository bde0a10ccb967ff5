//! 4-tuples of paths.

use std::time::Duration;

use super::{PathSet, PathStart, recovery_config, validation_times};
use crate::config::TransportConfig;
use crate::paths::{Slot, Tuple, Validation};
use crate::recovery::{InitialWindowChoice, RecoveryConfig};
use crate::rng::ConnectionRng;
use crate::time::Instant;
use crate::tuple::FourTuple;

impl PathSet {
    /// A 4-tuple that the connection did not have before.
    pub(crate) fn new_tuple(&mut self, config: &TransportConfig, addresses: FourTuple) -> Tuple {
        self.generation += 1;
        Tuple::new(config, self.generation, addresses)
    }

    /// A validation of a 4-tuple of a path that begins now.
    pub(crate) fn new_validation(
        &self,
        now: Instant,
        at: Slot,
        max_ack_delay: Duration,
        config: &TransportConfig,
    ) -> Validation {
        let pto = self.list[at].recovery.pto(max_ack_delay);
        Validation::new(now, validation_times(pto, config))
    }

    /// The main path leads to another host than that of the handshake.
    pub(crate) fn set_moved(&mut self) {
        self.moved = true;
    }

    /// What the recovery of a path begins with that leads to another host from now on.
    pub(crate) fn fresh_recovery(
        &self,
        config: &TransportConfig,
        at: Slot,
        initial_window: InitialWindowChoice,
        rng: &mut ConnectionRng,
    ) -> RecoveryConfig {
        let start = PathStart {
            initial_window,
            datagram_size: self.list[at].tuples.active.mtu.current(),
            initial_rtt: config.initial_rtt,
            seed: rng.seed(),
        };
        recovery_config(config, &*self.controllers, start)
    }
}
