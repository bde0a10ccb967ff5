//! Requests about acknowledgments, ours and the peer's (draft-ietf-quic-ack-frequency-14).

use marline_wire::TransportError;
use marline_wire::frame::AckFrequency;

use super::Connection;
use crate::time::Instant;

impl Connection {
    /// The handshake is complete: asks the peer for another frequency, if it takes requests.
    pub(super) fn request_ack_frequency(&mut self) {
        let Some(wanted) = self.config.ack_frequency else {
            return;
        };
        if let Some(shortest) = self.peer.min_ack_delay {
            let max_delay = wanted.max_delay.max(shortest);
            let announcement = &mut self.announcements.ack_frequency;
            announcement.announce(wanted.threshold, max_delay, wanted.reordering_threshold);
            self.peer.max_ack_delay = self.peer.max_ack_delay.max(max_delay);
        }
    }

    /// Handles a request to acknowledge less or more often (draft-ietf-quic-ack-frequency).
    pub(super) fn on_ack_frequency(
        &mut self,
        now: Instant,
        frame: &AckFrequency,
    ) -> Result<(), TransportError> {
        let Some(requested) = self.ack_request.on_frame(frame)? else {
            return Ok(());
        };
        for path in self.paths.iter_mut() {
            path.ack_policy.on_frequency(&requested);
        }
        self.report_ack_frequency(now, frame);
        Ok(())
    }
}
