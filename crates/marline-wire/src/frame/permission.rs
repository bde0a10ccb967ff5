//! Permitted packet types of each frame (RFC 9000, section 12.4, table 3;
//! draft-ietf-quic-multipath-21, section 4).

use super::Frame;
use crate::packet::ProtectedKind;
use crate::{ErrorCode, TransportError};

impl Frame<'_> {
    /// Checks that the frame is permitted in a packet of this kind.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if it is not.
    #[inline]
    pub fn check_permitted(&self, kind: ProtectedKind) -> Result<(), TransportError> {
        let permitted = match kind {
            ProtectedKind::Short => true,
            ProtectedKind::Initial { .. } | ProtectedKind::Handshake => matches!(
                self,
                Self::Padding { .. }
                    | Self::Ping
                    | Self::Ack(_)
                    | Self::Crypto(_)
                    | Self::ConnectionClose(_)
            ),
            ProtectedKind::ZeroRtt => {
                !self.is_multipath()
                    && !matches!(
                        self,
                        Self::Ack(_)
                            | Self::Crypto(_)
                            | Self::HandshakeDone
                            | Self::NewToken(_)
                            | Self::PathResponse(_)
                            | Self::RetireConnectionId(_)
                    )
            }
        };
        if permitted {
            return Ok(());
        }
        let reason = "a frame that is not permitted in packets of this type";
        Err(TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason).in_frame(self.frame_type()))
    }
}
