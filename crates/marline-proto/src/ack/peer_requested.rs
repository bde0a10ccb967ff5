//! Acknowledgments as the peer requests with ACK_FREQUENCY (draft-ietf-quic-ack-frequency-14, section 6).

use std::sync::Arc;
use std::time::Duration;

use super::{AckDecision, AckPolicy, EveryN, ReceivedView, Requested};
use crate::settings::{Entry, Make, Spec};

/// The policy's name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn AckPolicy>, EveryN> = Entry {
    name: "peer_requested",
    about: "After a number of packets, unless the peer requests another number (ACK_FREQUENCY)",
    parameters: EveryN::SETTINGS,
    default: EveryN::default,
    make: |before| Arc::new(move || Box::new(PeerRequested::new(before))),
};

/// Acknowledges as RFC 9000 recommends until the peer requests another frequency.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerRequested {
    before: EveryN,
    requested: Option<Requested>,
    /// Whether the previous packet was CE-marked.
    was_ce: bool,
}

impl PeerRequested {
    /// Acknowledges like `before` until the peer requests a frequency.
    pub const fn new(before: EveryN) -> Self {
        Self {
            before,
            requested: None,
            was_ce: false,
        }
    }
}

impl Requested {
    fn frequency(&self) -> EveryN {
        EveryN {
            packets: self.threshold.saturating_add(1),
            max_delay: self.max_delay,
        }
    }

    /// Whether `packet` opens or fills a gap that must be reported at once (section 6.2).
    fn reorders(&self, packet: &ReceivedView) -> bool {
        let threshold = self.reordering_threshold;
        let opens = packet
            .smallest_missing
            .is_some_and(|missing| packet.largest.saturating_sub(missing) >= threshold);
        let fills = packet
            .largest_acked
            .and_then(|acked| acked.checked_sub(threshold))
            .is_some_and(|reported| packet.number <= reported);
        threshold > 0 && (opens || fills)
    }

    /// Whether a CE-marked packet is acknowledged at once: every one at the default threshold, the
    /// first of a row at larger ones (section 6.3).
    fn expedites(&self, was_ce: bool) -> bool {
        self.threshold <= 1 || !was_ce
    }
}

impl AckPolicy for PeerRequested {
    fn on_packet(&mut self, packet: &ReceivedView) -> AckDecision {
        let was_ce = std::mem::replace(&mut self.was_ce, packet.ce);
        let Some(requested) = self.requested else {
            return self.before.on_packet(packet);
        };
        let at_once = requested.reorders(packet) || (packet.ce && requested.expedites(was_ce));
        if at_once && packet.unacked > 0 {
            return AckDecision::Now;
        }
        requested.frequency().count(packet)
    }

    fn on_frequency(&mut self, requested: &Requested) {
        self.requested = Some(*requested);
    }

    fn max_ack_delay(&self) -> Duration {
        self.requested
            .map_or(self.before.max_delay, |requested| requested.max_delay)
    }

    fn reordering_threshold(&self) -> u64 {
        self.requested
            .map_or(1, |requested| requested.reordering_threshold)
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(&self.before)
    }
}
