//! The acknowledgment frequency that the peer requests with ACK_FREQUENCY frames.

use std::time::Duration;

use marline_wire::frame::AckFrequency;
use marline_wire::{ErrorCode, TransportError};

use super::Requested;

/// The smallest delay that the peer may request: our `min_ack_delay`.
pub(crate) const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// The newest request of the peer. It applies to all current and future paths.
#[derive(Debug, Default)]
pub(crate) struct PeerRequest {
    sequence: Option<u64>,
    requested: Option<Requested>,
}

impl PeerRequest {
    /// The requested frequency; `None` without a request.
    pub(crate) fn requested(&self) -> Option<&Requested> {
        self.requested.as_ref()
    }

    /// Processes an ACK_FREQUENCY frame; returns the request if it is newer than all before.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if the requested delay is below our `min_ack_delay`.
    pub(crate) fn on_frame(
        &mut self,
        frame: &AckFrequency,
    ) -> Result<Option<Requested>, TransportError> {
        if self.sequence.is_some_and(|seen| frame.sequence <= seen) {
            return Ok(None);
        }
        if frame.requested_max_ack_delay < MIN_ACK_DELAY.as_micros() as u64 {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "requests ACKs sooner than min_ack_delay permits",
            )
            .in_frame(AckFrequency::TYPE));
        }
        self.sequence = Some(frame.sequence);
        let requested = Requested {
            threshold: frame.ack_eliciting_threshold,
            max_delay: Duration::from_micros(frame.requested_max_ack_delay),
            reordering_threshold: frame.reordering_threshold,
        };
        self.requested = Some(requested);
        Ok(Some(requested))
    }
}
