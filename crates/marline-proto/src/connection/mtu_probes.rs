//! Scheduling and sending of PMTU probes.

use std::time::Duration;

use marline_wire::TransportError;

use super::Connection;
use super::packet::DatagramContext;
use crate::paths::{Slot, Stage};
use crate::time::Instant;
use crate::tuple::{FourTuple, Transmit};

/// Divisor of the probe timeout: interval at which the first probe checks again for a bidirectional stream. A lost
/// request is retransmitted a probe timeout later.
const REQUEST_STEPS: u32 = 3;

/// State of the first PMTU probe. Sent before the first response, it would take an eighth of the initial window from
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FirstMtuProbe {
    /// No probe could be sent yet.
    #[default]
    NotAsked,
    /// The probe waits until the first round trip has ended, and for another probe timeout if nothing is requested.
    Waits {
        until: Instant,
        step: Duration,
        steps_left: u32,
        /// Whether a request existed one step ago, so that its response, or data without one, may have been sent.
        has_request: bool,
    },
    /// The probe is sent before data, as soon as the window has room: a sender that always has data would otherwise
    /// never send it.
    Due,
    /// Probes are sent when there is no data.
    Over,
}

impl FirstMtuProbe {
    pub(super) fn next_timeout(self) -> Option<Instant> {
        match self {
            Self::Waits { until, .. } => Some(until),
            Self::NotAsked | Self::Due | Self::Over => None,
        }
    }
}

impl Connection {
    pub(super) fn on_mtu_probe_timeout(&mut self, now: Instant) {
        let FirstMtuProbe::Waits {
            until,
            step,
            steps_left,
            has_request: had_request,
        } = self.first_mtu_probe
        else {
            return;
        };
        if now < until {
            return;
        }
        let initial_window = self.paths[Slot::FIRST].recovery.initial_window().bytes;
        let has_request = self.streams.had_bidirectional()
            || self.streams.stats().bytes_sent > initial_window / 2;
        let is_due = match has_request {
            true => had_request || steps_left == REQUEST_STEPS,
            false => steps_left == 0,
        };
        self.first_mtu_probe = match is_due {
            true => FirstMtuProbe::Due,
            false => FirstMtuProbe::Waits {
                until: now + step,
                step,
                steps_left: steps_left.saturating_sub(1),
                has_request,
            },
        };
    }

    /// Handles that the socket refused a datagram of `size` bytes between the addresses of `tuple`, because it exceeds the
    /// MTU of the interface (EMSGSIZE): the search continues below that size at once, instead of after losses.
    pub fn on_datagram_refused(&mut self, now: Instant, tuple: FourTuple, size: usize) {
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        let is_between = |at: &Slot| self.paths[*at].tuples.active.addresses == tuple;
        let Some(at) = self.paths.slots().find(is_between) else {
            return;
        };
        let path = &mut self.paths[at];
        if path.tuples.active.mtu.on_refused(size) {
            path.recovery.on_mtu(path.tuples.active.mtu.current());
            self.after_recovery(now, at);
        }
    }

    /// Whether a probe that could be sent on `at` is deferred.
    fn puts_off_mtu_probe(&mut self, now: Instant, at: Slot) -> bool {
        if at != Slot::FIRST || !self.config.late_mtu_probes {
            return false;
        }
        if self.first_mtu_probe == FirstMtuProbe::NotAsked {
            let recovery = &self.paths[at].recovery;
            let completed_at = self.establishment.progress().completed_at().unwrap_or(now);
            self.first_mtu_probe = FirstMtuProbe::Waits {
                until: completed_at + recovery.rtt().smoothed(),
                step: recovery.pto(self.establishment.peer().max_ack_delay) / REQUEST_STEPS,
                steps_left: REQUEST_STEPS,
                has_request: false,
            };
        }
        self.on_mtu_probe_timeout(now);
        matches!(self.first_mtu_probe, FirstMtuProbe::Waits { .. })
    }

    /// A PMTU probe (RFC 9000, section 14.4).
    pub(super) fn transmit_mtu_probe(
        &mut self,
        now: Instant,
        at: Slot,
        buf: &mut Vec<u8>,
    ) -> Result<Option<Transmit>, TransportError> {
        let searches = self.is_confirmed() && self.paths.searches_mtu(at);
        let path = &mut self.paths[at];
        if path.stage != Stage::Open || !searches {
            return Ok(None);
        }
        let active = &mut path.tuples.active;
        if !self.config.mtu.discover || !active.amplification.is_validated() {
            return Ok(None);
        }
        let Some(size) = active.mtu.poll_probe(now).map(usize::from) else {
            return Ok(None);
        };
        if self.puts_off_mtu_probe(now, at) {
            return Ok(None);
        }
        let path = &self.paths[at];
        if !path.recovery.has_window(size as u64) {
            return Ok(None);
        }
        let active = &path.tuples.active;
        let datagram = DatagramContext {
            path: at,
            end: buf.len() + size,
            ecn: None,
            tuple: active.generation,
            dcid: *path.remote_cids.active(),
        };
        let addresses = active.addresses;
        let number = path.space.sent.next_number();
        if at == Slot::FIRST {
            self.first_mtu_probe = FirstMtuProbe::Over;
        }
        self.transmit_alone(now, addresses, datagram, size, buf, |this, packet, buf| {
            packet.mtu_probe = true;
            packet.ping(buf);
            this.paths[at].tuples.active.mtu.on_probe_sent(number);
            true
        })
    }
}
