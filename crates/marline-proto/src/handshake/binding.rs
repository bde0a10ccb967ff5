//! Authentication of the handshake's connection IDs (RFC 9000, section 7.3).

use marline_wire::params::TransportParameters;
use marline_wire::{ConnectionId, ErrorCode, Side, TransportError};

/// The connection IDs of the handshake's packets, which the peer's parameters must repeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedIds {
    /// Role of this end.
    pub(crate) side: Side,
    /// Destination connection ID of the client's first Initial packet.
    pub(crate) original_destination: ConnectionId,
    /// Source connection ID of the peer's first Initial packet.
    pub(crate) initial_source: ConnectionId,
    /// Source connection ID of the Retry packet, if there was one.
    pub(crate) retry_source: Option<ConnectionId>,
}

impl ExpectedIds {
    /// Checks that the peer's parameters contain the same IDs.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR if an ID is missing or differs from that of the packets.
    pub(crate) fn check(&self, params: &TransportParameters) -> Result<(), TransportError> {
        let from_server = self.side.is_client();
        let match_packets = params.initial_source_connection_id == Some(self.initial_source)
            && (!from_server
                || params.original_destination_connection_id == Some(self.original_destination)
                    && params.retry_source_connection_id == self.retry_source);
        if match_packets {
            Ok(())
        } else {
            Err(TransportError::new(
                ErrorCode::TRANSPORT_PARAMETER_ERROR,
                "the connection IDs of the parameters are not those of the packets",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_different_connection_id_is_an_error() {
        let id = |n: u8| ConnectionId::new(&[n; 8]).unwrap();
        let expected = ExpectedIds {
            side: Side::Client,
            original_destination: id(1),
            initial_source: id(2),
            retry_source: Some(id(3)),
        };
        let good = TransportParameters {
            original_destination_connection_id: Some(id(1)),
            initial_source_connection_id: Some(id(2)),
            retry_source_connection_id: Some(id(3)),
            ..TransportParameters::default()
        };
        assert!(expected.check(&good).is_ok());
        for bad in [
            TransportParameters {
                original_destination_connection_id: None,
                ..good.clone()
            },
            TransportParameters {
                initial_source_connection_id: Some(id(9)),
                ..good.clone()
            },
            TransportParameters {
                retry_source_connection_id: None,
                ..good
            },
        ] {
            assert!(expected.check(&bad).is_err());
        }
    }
}
