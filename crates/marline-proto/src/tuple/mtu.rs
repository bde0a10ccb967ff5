//! DPLPMTUD: the largest datagram that a path carries (RFC 8899; RFC 9000, section 14.3).
//!
//! One probe is in flight at a time. The ceiling is tried first, because on most paths it fits;
//! then common link sizes, then by bisection. Sizes are bytes of UDP payload.

use std::time::Duration;

use crate::limits::{MIN_DATAGRAM_SIZE, MTU_BLACK_HOLE_ROUNDS, MTU_PROBES};
use crate::time::Instant;

/// Largest `max_udp_payload_size` that QUIC allows (RFC 9000, section 18.2).
pub(crate) const MAX_CEILING: u16 = 65527;

/// Time after a completed search until larger sizes are tried again (PMTU_RAISE_TIMER, RFC 8899, section 5.1.1).
const RAISE_INTERVAL: Duration = Duration::from_secs(600);

/// Remaining interval in bytes at which a search ends.
const RESOLUTION: u16 = 16;

/// Payloads that common links allow over IPv6 and IPv4, ascending: WireGuard (1420), tunnels (1480),
/// PPPoE (1492), Ethernet (1500), jumbo frames (9000), loopback devices (16384 and 65536).
const COMMON_SIZES: [u16; 12] = [
    1372, 1392, 1432, 1444, 1452, 1464, 1472, 8952, 8972, 16336, 65488, 65507,
];

/// Searches and stores the datagram size of one 4-tuple.
#[derive(Clone, Debug)]
pub(crate) struct MtuDiscovery {
    current: u16,
    ceiling: u16,
    phase: Phase,
    black_hole: BlackHole,
}

#[derive(Clone, Debug)]
enum Phase {
    Searching(Search),
    /// Complete; search again at this time, or never if the ceiling is reached.
    Done(Option<Instant>),
}

/// Bounds of a search between the size known to fit and the smallest known not to.
#[derive(Clone, Debug)]
struct Search {
    too_large: u16,
    /// Size of the probe, 0 before the first probe.
    size: u16,
    /// Packet number of the probe in flight.
    in_flight: Option<u64>,
    losses: u8,
}

impl Search {
    const fn new(too_large: u16) -> Self {
        Self {
            too_large,
            size: 0,
            in_flight: None,
            losses: 0,
        }
    }

    /// The next size to probe above `fits`.
    fn next_size(&self, fits: u16, ceiling: u16) -> Option<u16> {
        if self.too_large > ceiling {
            return (ceiling > fits).then_some(ceiling);
        }
        let from = COMMON_SIZES.partition_point(|&size| size <= fits);
        let to = COMMON_SIZES.partition_point(|&size| size < self.too_large);
        if let Some(candidates) = COMMON_SIZES.get(from..to).filter(|sizes| !sizes.is_empty()) {
            return candidates.get(candidates.len() / 2).copied();
        }
        let gap = self.too_large.saturating_sub(fits);
        (gap > RESOLUTION).then_some(fits + gap / 2)
    }
}

impl MtuDiscovery {
    /// Starts at 1200 bytes and never exceeds `ceiling`; a ceiling of 1200 or less disables discovery.
    pub(crate) fn new(ceiling: u16) -> Self {
        let ceiling = ceiling.clamp(MIN_DATAGRAM_SIZE, MAX_CEILING);
        Self {
            current: MIN_DATAGRAM_SIZE,
            ceiling,
            phase: Phase::Searching(Search::new(ceiling + 1)),
            black_hole: BlackHole::default(),
        }
    }

    /// Copies the result of another search between the same addresses.
    pub(crate) fn adopt(&mut self, other: &Self) {
        self.current = other.current.min(self.ceiling);
        self.phase = match &other.phase {
            Phase::Searching(search) => Phase::Searching(Search::new(search.too_large)),
            done @ Phase::Done(_) => done.clone(),
        };
        self.black_hole = BlackHole::default();
    }

    /// The largest datagram to send, except probes.
    pub(crate) const fn current(&self) -> u16 {
        self.current
    }

    /// Whether the search for a larger size is complete.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done(_))
    }

    /// Sets the peer's `max_udp_payload_size` as the largest size to search for.
    pub(crate) fn set_peer_limit(&mut self, max_udp_payload_size: u64) {
        let limit = u16::try_from(max_udp_payload_size).unwrap_or(u16::MAX);
        self.ceiling = self.ceiling.min(limit.max(MIN_DATAGRAM_SIZE));
        self.current = self.current.min(self.ceiling);
        self.phase = Phase::Searching(Search::new(self.ceiling + 1));
    }

    /// The size of the probe to send now, if one is due.
    ///
    /// The caller asks once the handshake is confirmed and the path validated, pads an
    /// ack-eliciting packet to that size, and reports it with [`Self::on_probe_sent`]. The loss of
    /// a probe is not a sign of congestion.
    pub(crate) fn poll_probe(&mut self, now: Instant) -> Option<u16> {
        if let Phase::Done(Some(again)) = self.phase
            && now >= again
        {
            self.phase = Phase::Searching(Search::new(self.ceiling + 1));
        }
        let Phase::Searching(search) = &mut self.phase else {
            return None;
        };
        if search.in_flight.is_some() {
            return None;
        }
        if search.losses == 0 {
            let Some(size) = search.next_size(self.current, self.ceiling) else {
                let higher = self.current < self.ceiling;
                self.phase = Phase::Done(higher.then(|| now + RAISE_INTERVAL));
                return None;
            };
            search.size = size;
        }
        Some(search.size)
    }

    /// Records that the probe of [`Self::poll_probe`] was sent in packet `number`.
    pub(crate) fn on_probe_sent(&mut self, number: u64) {
        if let Phase::Searching(search) = &mut self.phase {
            search.in_flight = Some(number);
        }
    }

    /// Handles the acknowledgment of packet `number`; if it was the probe in flight, returns the new size.
    pub(crate) fn on_probe_acked(&mut self, number: u64) -> Option<u16> {
        let search = self.probe_in_flight(number)?;
        search.in_flight = None;
        search.losses = 0;
        self.current = search.size;
        self.black_hole = BlackHole::default();
        Some(self.current)
    }

    /// Handles the loss of packet `number`, which counts against its size if it was the probe in flight.
    pub(crate) fn on_probe_lost(&mut self, number: u64) {
        let Some(search) = self.probe_in_flight(number) else {
            return;
        };
        search.in_flight = None;
        search.losses += 1;
        if search.losses == MTU_PROBES {
            search.losses = 0;
            search.too_large = search.size;
        }
    }

    /// Handles the acknowledgment of a packet other than a probe: number and size of its datagram.
    #[inline]
    pub(crate) fn on_acked(&mut self, number: u64, size: u16) {
        if self.black_hole.rounds != 0 {
            self.black_hole.on_acked(number, size);
        }
    }

    /// Handles the loss of a packet other than a probe: its number, the size of its datagram, and
    /// the largest number sent so far. Returns whether a black hole was detected, so that
    /// [`Self::current`] fell back to 1200 bytes (RFC 8899, section 4.3).
    ///
    /// Requires that smaller packets are sent: probe timeouts should send at most 1200 bytes.
    pub(crate) fn on_lost(&mut self, number: u64, size: u16, largest_sent: u64) -> bool {
        if size <= MIN_DATAGRAM_SIZE || size > self.current {
            return false;
        }
        self.black_hole.on_lost(number, size, largest_sent);
        let Some(too_large) = self.black_hole.verdict() else {
            return false;
        };
        self.current = MIN_DATAGRAM_SIZE;
        self.black_hole = BlackHole::default();
        self.phase = Phase::Searching(Search::new(too_large));
        true
    }

    /// Handles that the socket refused a datagram of `size` bytes, which exceeds the MTU of the interface. Returns whether
    /// [`Self::current`] fell back to 1200 bytes.
    pub(crate) fn on_refused(&mut self, size: u16) -> bool {
        if size <= MIN_DATAGRAM_SIZE {
            return false;
        }
        let shrinks = size <= self.current;
        if shrinks {
            self.current = MIN_DATAGRAM_SIZE;
            self.black_hole = BlackHole::default();
        }
        self.phase = Phase::Searching(Search::new(size.min(self.ceiling + 1)));
        shrinks
    }

    fn probe_in_flight(&mut self, number: u64) -> Option<&mut Search> {
        match &mut self.phase {
            Phase::Searching(search) if search.in_flight == Some(number) => Some(search),
            _ => None,
        }
    }
}

/// Evidence that losses depend on the size.
///
/// A round is a loss among packets sent after the previous round was detected, so that one burst, as
/// caused by congestion, counts once. The arrival of a later packet of that size refutes the evidence.
#[derive(Clone, Debug, Default)]
struct BlackHole {
    rounds: u8,
    /// Number of the first lost packet.
    first_lost: u64,
    /// Smallest lost size.
    smallest_lost: u16,
    /// Losses up to this number belong to rounds already counted.
    counted_to: u64,
    /// Whether a smaller packet arrived meanwhile, which shows that the path works.
    smaller_arrived: bool,
}

impl BlackHole {
    fn on_acked(&mut self, number: u64, size: u16) {
        if number < self.first_lost {
            return;
        }
        if size < self.smallest_lost {
            self.smaller_arrived = true;
        } else {
            *self = Self::default();
        }
    }

    fn on_lost(&mut self, number: u64, size: u16, largest_sent: u64) {
        if self.rounds == 0 {
            (self.first_lost, self.smallest_lost) = (number, size);
        }
        self.smallest_lost = self.smallest_lost.min(size);
        if self.rounds == 0 || number > self.counted_to {
            self.rounds = self.rounds.saturating_add(1);
            self.counted_to = largest_sent;
        }
    }

    /// The size that does not fit, if the evidence suffices.
    fn verdict(&self) -> Option<u16> {
        (self.rounds >= MTU_BLACK_HOLE_ROUNDS && self.smaller_arrived).then_some(self.smallest_lost)
    }
}

#[cfg(test)]
mod tests;
