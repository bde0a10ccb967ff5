//! The causes of failed handshakes.

use marline::ConnectionError;

/// The cause of a failed handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeFailure {
    /// The server's certificate is not trusted.
    Certificate,
    /// The server does not support the protocol.
    Protocol,
    /// The server did not respond, or another error of the network.
    Network,
}

/// Classifies a failed handshake of a client by its TLS alert (RFC 8446 section 6.2).
///
/// The server's certificate is refused by this side: the peer's alerts about certificates are about that of the client.
pub(crate) fn classify(error: &ConnectionError) -> HandshakeFailure {
    let code = match error {
        ConnectionError::VersionMismatch => return HandshakeFailure::Protocol,
        ConnectionError::Transport(error) => error.code,
        ConnectionError::PeerTransport { code, .. } => *code,
        _ => return HandshakeFailure::Network,
    };
    let own = matches!(error, ConnectionError::Transport(_));
    match code.tls_alert() {
        // bad_certificate .. unknown_ca, but illegal_parameter.
        Some(42..=46 | 48) if own => HandshakeFailure::Certificate,
        // no_application_protocol
        Some(120) => HandshakeFailure::Protocol,
        _ => HandshakeFailure::Network,
    }
}

#[cfg(test)]
mod tests {
    use marline::{ErrorCode, TransportError};

    use super::*;

    #[test]
    fn alerts_of_the_peer_are_not_about_its_own_certificate() {
        for (alert, own, of_peer) in [
            (48, HandshakeFailure::Certificate, HandshakeFailure::Network),
            (120, HandshakeFailure::Protocol, HandshakeFailure::Protocol),
            (40, HandshakeFailure::Network, HandshakeFailure::Network),
        ] {
            let code = ErrorCode::crypto(alert);
            let error = TransportError::new(code, "refused");
            assert_eq!(classify(&ConnectionError::Transport(error)), own);
            let error = ConnectionError::PeerTransport {
                code,
                frame_type: 0,
                reason: "refused".into(),
            };
            assert_eq!(classify(&error), of_peer, "alert {alert}");
        }
    }
}
