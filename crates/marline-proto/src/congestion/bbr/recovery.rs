//! BBR version 1 in recovery: packet conservation for a round, then growth like slow start.

use crate::Instant;

/// A bound on the window during recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BbrRecovery {
    /// When the latest recovery began: losses of packets sent until then belong to it.
    start: Option<Instant>,
    stage: Stage,
    window: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    None,
    /// One packet is sent for each one delivered.
    Conservation,
    /// Two packets are sent for each one delivered.
    Growth,
}

impl BbrRecovery {
    pub(super) fn is_active(&self) -> bool {
        self.stage != Stage::None
    }

    /// The bound on the window, in bytes.
    pub(super) fn window(&self) -> Option<u64> {
        self.is_active().then_some(self.window)
    }

    fn covers(&self, sent_at: Instant) -> bool {
        self.start.is_some_and(|start| sent_at <= start)
    }

    /// A packet sent at `sent_at` was lost while `in_flight` bytes remain.
    pub(super) fn on_loss(&mut self, now: Instant, sent_at: Instant, in_flight: u64) {
        if !self.covers(sent_at) {
            self.start = Some(now);
            self.stage = Stage::Conservation;
            self.window = in_flight;
        }
    }

    /// A packet sent at `sent_at` was acknowledged, and `acked` bytes in all; `in_flight` remain.
    pub(super) fn on_ack(
        &mut self,
        sent_at: Instant,
        acked: u64,
        in_flight: u64,
        round_begins: bool,
    ) {
        if !self.is_active() {
            return;
        }
        if !self.covers(sent_at) {
            self.stage = Stage::None;
            return;
        }
        if self.stage == Stage::Conservation && round_begins {
            self.stage = Stage::Growth;
        }
        if self.stage == Stage::Growth {
            self.window = self.window.saturating_add(acked);
        }
        self.window = self.window.max(in_flight.saturating_add(acked));
    }

    /// Ends recovery; further losses of packets sent before it began are still ignored.
    pub(super) fn end(&mut self) {
        self.stage = Stage::None;
    }
}
