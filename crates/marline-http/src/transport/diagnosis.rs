//! Why a handshake failed.

use marline::ConnectionError;

/// Whose fault it is that a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The server's certificate is not trusted.
    Certificate,
    /// The server does not speak this protocol.
    Protocol,
    /// Nothing came through.
    Network,
}

/// Reads the TLS alert (RFC 8446 section 6.2) behind a failed handshake.
pub(crate) fn blame(error: &ConnectionError) -> Blame {
    let code = match error {
        ConnectionError::VersionMismatch => return Blame::Protocol,
        ConnectionError::Transport(error) => error.code,
        ConnectionError::PeerTransport { code, .. } => *code,
        _ => return Blame::Network,
    };
    match code.tls_alert() {
        // bad_certificate .. unknown_ca, but illegal_parameter.
        Some(42..=46 | 48) => Blame::Certificate,
        // no_application_protocol
        Some(120) => Blame::Protocol,
        _ => Blame::Network,
    }
}
