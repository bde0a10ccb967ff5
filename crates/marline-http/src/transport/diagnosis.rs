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

/// Classifies a failed handshake by its TLS alert (RFC 8446 section 6.2).
pub(crate) fn classify(error: &ConnectionError) -> HandshakeFailure {
    let code = match error {
        ConnectionError::VersionMismatch => return HandshakeFailure::Protocol,
        ConnectionError::Transport(error) => error.code,
        ConnectionError::PeerTransport { code, .. } => *code,
        _ => return HandshakeFailure::Network,
    };
    match code.tls_alert() {
        // bad_certificate .. unknown_ca, but illegal_parameter.
        Some(42..=46 | 48) => HandshakeFailure::Certificate,
        // no_application_protocol
        Some(120) => HandshakeFailure::Protocol,
        _ => HandshakeFailure::Network,
    }
}
