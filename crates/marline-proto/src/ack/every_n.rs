//! One acknowledgment for every N packets (RFC 9000, sections 13.2.1 and 13.2.2).

use std::sync::Arc;
use std::time::Duration;

use super::{AckDecision, AckPolicy, DEFAULT_MAX_ACK_DELAY, MAX_DELAY, ReceivedView};
use crate::settings::{Domain, Entry, Make, Settings, Spec, field};

/// The policy's name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn AckPolicy>, EveryN> = Entry {
    name: "every_n",
    about: "After a number of packets, regardless of requests of the peer (RFC 9000, section 13.2)",
    parameters: EveryN::SETTINGS,
    default: EveryN::default,
    make: |config| Arc::new(move || Box::new(config)),
};

/// Acknowledges every `packets`-th packet, packets out of order and CE-marked packets at once, and all
/// others within `max_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EveryN {
    /// Number of ack-eliciting packets after which an acknowledgment is due.
    pub packets: u64,
    /// Maximum delay of an acknowledgment.
    pub max_delay: Duration,
}

impl Default for EveryN {
    /// Every second packet or 25 ms.
    fn default() -> Self {
        Self {
            packets: 2,
            max_delay: DEFAULT_MAX_ACK_DELAY,
        }
    }
}

impl EveryN {
    /// The policy's parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        field!(packets: Domain::integer(1, 1000), "Ack-eliciting packets after which an acknowledgment is due"),
        field!(max_delay: MAX_DELAY, "Maximum delay of an acknowledgment"),
    ];

    /// The decision by number and delay, regardless of order and ECN marks.
    pub fn count(&self, packet: &ReceivedView) -> AckDecision {
        let due_at = packet.oldest_unacked_at + self.max_delay;
        if packet.unacked == 0 {
            AckDecision::NotNeeded
        } else if packet.unacked >= self.packets || due_at <= packet.now {
            AckDecision::Now
        } else {
            AckDecision::By(due_at)
        }
    }
}

impl AckPolicy for EveryN {
    fn on_packet(&mut self, packet: &ReceivedView) -> AckDecision {
        if packet.unacked > 0 && (packet.out_of_order || packet.ce) {
            return AckDecision::Now;
        }
        self.count(packet)
    }

    fn max_ack_delay(&self) -> Duration {
        self.max_delay
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        ENTRY.spec(self)
    }
}
