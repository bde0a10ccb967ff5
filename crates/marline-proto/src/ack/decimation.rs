//! Infrequent acknowledgments, for links where they compete with data (Wi-Fi).

use std::sync::Arc;
use std::time::Duration;

use super::{
    AckDecision, AckPolicy, DEFAULT_MAX_ACK_DELAY, EveryN, MAX_DELAY, PeerRequested, ReceivedView,
    Requested,
};
use crate::samples::scaled;
use crate::settings::{Domain, Entry, Make, Settings, Spec, field};

/// The policy's name and parameters in settings.
pub(super) const ENTRY: Entry<Make<dyn AckPolicy>, Decimation> = Entry {
    name: "decimation",
    about: "One acknowledgment for many packets, except for the first packets of a connection",
    parameters: Decimation::SETTINGS,
    default: Decimation::default,
    make: |config| {
        Arc::new(move || match config.until_asked {
            true => Box::new(DecimateUntilRequested::new(config)),
            false => Box::new(config),
        })
    },
};

/// One cumulative acknowledgment for many packets, once the connection's window has had time to grow.
///
/// Packets out of order and CE-marked packets are still acknowledged at once, because the sender's
/// loss detection and congestion control depend on them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimation {
    /// Number of ack-eliciting packets after which an acknowledgment is due.
    pub packets: u64,
    /// Maximum delay of an acknowledgment.
    pub max_delay: Duration,
    /// Packets to receive before acknowledgments become infrequent; until then, every second packet is acknowledged.
    pub start_after: u64,
    /// Maximum delay of an acknowledgment as a divisor of the minimum round-trip time; 0 disables this bound.
    pub rtt_fraction: f64,
    /// Whether an ACK_FREQUENCY frame of the peer overrides these parameters: see [`DecimateUntilRequested`].
    pub until_asked: bool,
}

impl Default for Decimation {
    /// Ten packets, 25 ms or a quarter of the round-trip time, after 100 packets.
    fn default() -> Self {
        Self {
            start_after: 100,
            rtt_fraction: 0.25,
            ..Self::PLAIN
        }
    }
}

impl Decimation {
    /// The policy's parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        field!(packets: Domain::integer(1, 1000), "Ack-eliciting packets after which an acknowledgment is due"),
        field!(max_delay: MAX_DELAY, "Maximum delay of an acknowledgment"),
        field!(
            start_after: Domain::integer(0, 1_000_000),
            "Packets to receive before acknowledgments become less frequent than one for two packets"
        ),
        field!(
            rtt_fraction: Domain::number(0.0, 1.0),
            "Maximum delay of an acknowledgment as a divisor of the minimum round-trip time; 0 disables it"
        ),
        field!(until_asked: Domain::SWITCH, "Whether a request of the peer (ACK_FREQUENCY) overrides these settings"),
    ];

    /// Ten packets or 25 ms, from the first packet on.
    pub const PLAIN: Self = Self {
        packets: 10,
        max_delay: DEFAULT_MAX_ACK_DELAY,
        start_after: 0,
        rtt_fraction: 0.0,
        until_asked: false,
    };

    /// The frequency that applies to `packet`.
    fn frequency(&self, packet: &ReceivedView) -> EveryN {
        if packet.total_received < self.start_after {
            return EveryN {
                max_delay: self.max_delay,
                ..EveryN::default()
            };
        }
        let fraction = scaled(packet.min_rtt, self.rtt_fraction);
        EveryN {
            packets: self.packets,
            max_delay: if fraction.is_zero() {
                self.max_delay
            } else {
                self.max_delay.min(fraction)
            },
        }
    }
}

impl AckPolicy for Decimation {
    fn on_packet(&mut self, packet: &ReceivedView) -> AckDecision {
        self.frequency(packet).on_packet(packet)
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

/// [`Decimation`] until the peer requests a frequency with ACK_FREQUENCY, then [`PeerRequested`]: a sender that sends
/// requests knows its window, its loss detection and its pacing.
#[derive(Clone, Copy, Debug)]
pub struct DecimateUntilRequested {
    before: Decimation,
    asked: PeerRequested,
    is_asked: bool,
}

impl DecimateUntilRequested {
    /// Acknowledges like `before` until the peer requests a frequency.
    pub fn new(before: Decimation) -> Self {
        Self {
            before: Decimation {
                until_asked: true,
                ..before
            },
            asked: PeerRequested::default(),
            is_asked: false,
        }
    }

    fn policy(&self) -> &dyn AckPolicy {
        match self.is_asked {
            true => &self.asked,
            false => &self.before,
        }
    }
}

impl AckPolicy for DecimateUntilRequested {
    fn on_packet(&mut self, packet: &ReceivedView) -> AckDecision {
        match self.is_asked {
            true => self.asked.on_packet(packet),
            false => self.before.on_packet(packet),
        }
    }

    fn on_frequency(&mut self, requested: &Requested) {
        self.is_asked = true;
        self.asked.on_frequency(requested);
    }

    fn max_ack_delay(&self) -> Duration {
        self.policy().max_ack_delay()
    }

    fn reordering_threshold(&self) -> u64 {
        self.policy().reordering_threshold()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn spec(&self) -> Spec {
        self.before.spec()
    }
}
