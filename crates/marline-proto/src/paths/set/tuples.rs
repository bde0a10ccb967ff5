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
    /// A new 4-tuple of the connection.
    pub(crate) fn new_tuple(&mut self, config: &TransportConfig, addresses: FourTuple) -> Tuple {
        self.generation += 1;
        Tuple::new(config, self.generation, addresses)
    }

    /// A validation of a path's 4-tuple that starts now.
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

    /// Records that the main path leads to another host than that of the handshake.
    pub(crate) fn set_moved(&mut self) {
        self.moved = true;
    }

    /// The initial recovery parameters of a path that now leads to another host.
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
