//! ACK_FREQUENCY requests of both ends (draft-ietf-quic-ack-frequency-14).

use marline_wire::TransportError;
use marline_wire::frame::AckFrequency;

use super::Connection;
use crate::ack::{ReceiverView, SendView};
use crate::observe::events::Initiator;
use crate::paths::Slot;
use crate::time::Instant;

impl Connection {
    /// Requests another acknowledgment frequency, if the peer supports it and the wanted one has changed. Called
    /// when the handshake completes, and after acknowledgments.
    pub(super) fn request_ack_frequency(&mut self, now: Instant) {
        let (Some(wanted), Some(shortest)) = (
            self.config.ack_frequency,
            self.establishment.peer().min_ack_delay,
        ) else {
            return;
        };
        // A scalable controller needs every mark immediately, and packets that do not leave in the bursts of
        // infrequent ACKs.
        let mut open = self.paths.iter().filter(|path| path.is_open());
        if open.any(|path| path.tuples.active.ecn.is_l4s()) {
            return;
        }
        let receiver = ReceiverView {
            shortest,
            usual: self.establishment.peer().usual_ack_delay,
        };
        let sending = self.send_view();
        let request = self
            .own_ack_request
            .update(now, &wanted, &receiver, &sending);
        if let Some(requested) = request {
            self.establishment.expect_ack_delay(requested.max_delay);
            self.announcements.ack_frequency.announce(&requested);
        }
    }

    fn send_view(&self) -> SendView {
        let open = || self.paths.iter().filter(|path| path.is_open());
        let packets = open().map(|path| {
            let size = u64::from(path.tuples.active.mtu.current()).max(1);
            path.recovery.controller().window() / size
        });
        SendView {
            window_packets: packets.min().unwrap_or(0),
            rtt: open()
                .map(|path| path.recovery.rtt().view().smoothed)
                .min()
                .unwrap_or_default(),
            sent: open()
                .map(|path| path.space.sent.next_number())
                .max()
                .unwrap_or(0),
        }
    }

    /// Processes an ACK_FREQUENCY frame in a packet on path `at`.
    pub(super) fn on_ack_frequency(
        &mut self,
        now: Instant,
        at: Slot,
        frame: &AckFrequency,
    ) -> Result<(), TransportError> {
        let Some(requested) = self.ack_request.on_frame(frame)? else {
            return Ok(());
        };
        for path in self.paths.iter_mut() {
            path.ack_policy.on_frequency(&requested);
        }
        self.telemetry
            .report_ack_frequency(now, &self.paths[at], Initiator::Remote, &requested);
        Ok(())
    }
}
