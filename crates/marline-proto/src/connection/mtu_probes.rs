//! Probes for larger datagrams: when the first leaves, and how.

use std::time::Duration;

use marline_wire::TransportError;

use super::Connection;
use super::packet::DatagramContext;
use crate::paths::{Slot, Stage};
use crate::time::Instant;
use crate::tuple::Transmit;

/// Round trips that the first probe waits for a bidirectional stream, after the one that it waits anyway: a request that
/// was lost comes a probe timeout later.
const REQUEST_ROUNDS: u32 = 3;

/// The first probe for larger datagrams. Before the first response it would take an eighth of the initial window from
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FirstMtuProbe {
    /// Nothing asked for it yet.
    #[default]
    NotAsked,
    /// It waits until the first round trip is over, and a few more where nothing is requested.
    Waits {
        until: Instant,
        round_trip: Duration,
        rounds_left: u32,
    },
    /// It leaves before data, as soon as the window has room: a sender that always has data would never send it after
    /// them.
    Due,
    /// Probes leave when there is no data.
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
            round_trip,
            rounds_left,
        } = self.first_mtu_probe
        else {
            return;
        };
        if now < until {
            return;
        }
        self.first_mtu_probe = match rounds_left.checked_sub(1) {
            Some(rounds_left) if !self.streams.had_bidirectional() => FirstMtuProbe::Waits {
                until: now + round_trip,
                round_trip,
                rounds_left,
            },
            _ => FirstMtuProbe::Due,
        };
    }

    /// Whether a probe that could leave on `at` is put off.
    fn puts_off_mtu_probe(&mut self, now: Instant, at: Slot) -> bool {
        if at != Slot::FIRST || !self.config.late_mtu_probes {
            return false;
        }
        if self.first_mtu_probe == FirstMtuProbe::NotAsked {
            let round_trip = self.paths[at].recovery.rtt().smoothed();
            let completed_at = self.progress.completed_at().unwrap_or(now);
            self.first_mtu_probe = FirstMtuProbe::Waits {
                until: completed_at + round_trip,
                round_trip,
                rounds_left: REQUEST_ROUNDS,
            };
        }
        self.first_mtu_probe
            .next_timeout()
            .is_some_and(|until| now < until)
    }

    /// A probe for larger datagrams (RFC 9000, section 14.4).
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
            Self::write_ping(packet, buf);
            this.paths[at].tuples.active.mtu.on_probe_sent(number);
            true
        })
    }
}
