//! The send budget of a path: congestion window, bytes in flight, pacing (RFC 9002, section 7).

use std::time::Duration;

use crate::congestion::{Controller, Pacer};
use crate::samples::{RttView, SentSample};
use crate::time::Instant;

use super::first_flight::{FirstFlight, InitialWindowChoice};

/// The send budget.
#[derive(Debug)]
pub(super) struct Budget {
    controller: Box<dyn Controller>,
    /// `None` if packets are not paced.
    pacer: Option<Pacer>,
    in_flight: u64,
    /// Whether the last transmission was limited by the lack of data, not by window or pacer.
    app_limited: bool,
    /// Whether the window ever limited sending.
    window_limited: bool,
    /// Time since which no packet is in flight.
    idle_since: Option<Instant>,
    /// Time at which the pacer permits the next packet.
    paced_until: Option<Instant>,
    first_flight: FirstFlight,
    /// Pacing rate of an unvalidated window, in bytes per second.
    unvalidated_rate: Option<u64>,
}

impl Budget {
    pub(super) fn new(
        controller: Box<dyn Controller>,
        pacer: Option<Pacer>,
        first: InitialWindowChoice,
    ) -> Self {
        Self {
            controller,
            pacer,
            in_flight: 0,
            app_limited: true,
            window_limited: false,
            idle_since: None,
            paced_until: None,
            first_flight: FirstFlight::new(first),
            unvalidated_rate: None,
        }
    }

    /// The same budget with `in_flight` bytes in flight.
    pub(super) fn with_in_flight(self, in_flight: u64) -> Self {
        Self { in_flight, ..self }
    }

    pub(super) fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    pub(super) fn controller_mut(&mut self) -> &mut dyn Controller {
        &mut *self.controller
    }

    /// The controller, to be replaced.
    pub(super) fn controller_place(&mut self) -> &mut Box<dyn Controller> {
        &mut self.controller
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited
    }

    pub(super) fn is_window_limited(&self) -> bool {
        self.window_limited
    }

    pub(super) fn set_window_limited(&mut self) {
        self.window_limited = true;
    }

    pub(super) fn set_app_limited(&mut self, app_limited: bool) {
        self.app_limited = app_limited;
    }

    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.idle_since
    }

    pub(super) fn paced_until(&self) -> Option<Instant> {
        self.paced_until
    }

    pub(super) fn stop_pacing(&mut self) {
        self.paced_until = None;
    }

    pub(super) fn is_paced(&self) -> bool {
        self.pacer.is_some()
    }

    pub(super) fn first_flight(&self) -> &FirstFlight {
        &self.first_flight
    }

    pub(super) fn first_flight_mut(&mut self) -> &mut FirstFlight {
        &mut self.first_flight
    }

    pub(super) fn set_unvalidated_rate(&mut self, bytes_per_second: Option<u64>) {
        self.unvalidated_rate = bytes_per_second;
    }

    /// Whether the window permits `bytes` more (RFC 9002, section 7).
    pub(super) fn has_window(&self, bytes: u64) -> bool {
        self.in_flight + bytes <= self.controller.window()
    }

    /// Pacing rate in bytes per second. An unvalidated window, the initial one or that of careful
    /// resume, is spread over a round trip.
    pub(super) fn pacing_rate(&self, rtt: &RttView) -> u64 {
        self.spread_rate(rtt)
            .unwrap_or_else(|| self.controller.pacing_rate(rtt))
    }

    fn spread_rate(&self, rtt: &RttView) -> Option<u64> {
        self.unvalidated_rate
            .or_else(|| self.first_flight.pacing_rate(rtt, self.controller.window()))
    }

    /// Whether window and pacer permit `bytes` now; records how long the pacer does not.
    pub(super) fn may_send(&mut self, now: Instant, bytes: u64, rtt: &RttView) -> bool {
        self.paced_until = None;
        if !self.has_window(bytes) {
            return false;
        }
        self.paced_until = self.next_send(now, bytes, rtt);
        self.paced_until.is_none()
    }

    fn next_send(&mut self, now: Instant, bytes: u64, rtt: &RttView) -> Option<Instant> {
        let spread = self.spread_rate(rtt);
        let pacer = self.pacer.as_mut()?;
        match spread {
            Some(rate) => pacer.next_send_spread(now, rate, bytes),
            None => {
                let window = self.controller.window();
                pacer.next_quantum(now, self.controller.pacing_rate(rtt), bytes, window)
            }
        }
    }

    /// How long the pacer holds back a packet, if it is the last of `bytes` that leave from `now` on.
    pub(super) fn paced_for(&self, now: Instant, bytes: u64, rtt: &RttView) -> Duration {
        let wait = |pacer: &Pacer| match self.spread_rate(rtt) {
            Some(rate) => pacer.wait_spread(now, rate, bytes),
            None => pacer.wait(now, self.controller.pacing_rate(rtt), bytes),
        };
        self.pacer.as_ref().map_or(Duration::ZERO, wait)
    }

    /// A packet of `bytes` that counts as in flight left.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        packet_number: u64,
        bytes: u64,
        rtt: &RttView,
    ) -> SentSample {
        if let Some(idle_since) = self.idle_since.take() {
            self.controller.on_idle(now, now - idle_since);
        }
        self.in_flight += bytes;
        let sample = SentSample {
            packet_number,
            bytes,
            bytes_in_flight: self.in_flight,
            app_limited: self.app_limited,
        };
        self.controller.on_sent(now, &sample);
        let rate = self.pacing_rate(rtt);
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now, rate, bytes);
        }
        self.first_flight.on_sent(now, bytes);
        sample
    }

    /// Removes `bytes` from those in flight, because they were acknowledged, lost or discarded.
    pub(super) fn release(&mut self, bytes: u64) {
        self.in_flight -= bytes;
    }

    /// Called after acknowledgments or losses: if no packet is in flight any more, the path is idle.
    pub(super) fn note_idle(&mut self, now: Instant) {
        if self.in_flight == 0 {
            self.idle_since.get_or_insert(now);
        }
    }

    /// Sets the datagram size, in bytes.
    pub(super) fn on_mtu(&mut self, size: u16) {
        self.controller.on_mtu(size.into());
        if let Some(pacer) = &mut self.pacer {
            pacer.on_mtu(size.into());
        }
    }
}
