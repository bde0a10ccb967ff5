//! Timers: the earliest deadline of all modules, and the handling of timeouts.

use super::Connection;
use super::events::{ConnectionError, EndpointEvent};
use crate::paths::Slot;
use crate::time::Instant;

impl Connection {
    /// Time of the next [`Self::handle_timeout`]. It may change with every other call.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.lifecycle.is_open() {
            return self.lifecycle.next_timeout();
        }
        self.paths
            .slots()
            .filter_map(|at| self.next_timeout_of(at))
            .chain(self.paths.next_forgetting())
            .chain(self.idle.next_timeout())
            .chain(self.establishment.next_timeout())
            .chain(self.first_mtu_probe.next_timeout())
            .min()
    }

    fn next_timeout_of(&self, at: Slot) -> Option<Instant> {
        let path = &self.paths[at];
        // Data blocked by the amplification limit waits for the peer, not for a timer.
        let may_send = path.may_send_data();
        let may_acknowledge = |_: &Instant| {
            let carrier = &self.paths[self.paths.ack_carrier(at)];
            carrier.may_send_data()
        };
        let handshake = self.handshake_spaces_of(at);
        let acks = handshake
            .filter_map(|(_, space)| space.received.deadline())
            .chain(path.space.received.deadline())
            .min();
        let sends = path.recovery.paced_until().filter(|_| may_send);
        acks.filter(may_acknowledge)
            .into_iter()
            .chain(sends)
            .chain(path.recovery.next_timeout())
            .chain(path.next_validation_timeout())
            .chain(
                self.paths
                    .next_finding(at, self.establishment.peer().max_ack_delay),
            )
            .min()
    }

    /// Handles timers that expired by `now`; afterwards [`Self::poll_transmit`] may return packets.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.lifecycle.is_open() {
            if self.lifecycle.on_timeout(now) {
                self.events.endpoint.push_back(EndpointEvent::Drained);
            }
            return;
        }
        if self.idle.is_expired(now) {
            return self.end_silently(now, ConnectionError::IdleTimeout);
        }
        if self.establishment.progress().is_late(now) {
            return self.end_silently(now, ConnectionError::HandshakeTimeout);
        }
        if self.idle.take_ping(now) {
            self.ping();
        }
        if self.idle.take_response_ping(now) && self.streams.awaits_response() {
            self.ping();
        }
        self.repeat_early(now);
        self.on_mtu_probe_timeout(now);
        self.on_loss_timeouts(now);
        self.establishment.on_timeout(now);
        for at in self.paths.slots() {
            self.on_validation_timeout(now, at);
        }
        self.on_path_findings(now);
        self.forget_paths(now);
        self.report_paths_available();
        self.sending.refresh(&mut self.streams);
        self.telemetry
            .report_changes(now, &mut self.streams, &self.paths);
    }
}
