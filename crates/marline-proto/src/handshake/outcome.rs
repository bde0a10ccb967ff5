//! The results of a handshake, which outlive its TLS state.

use rustls::HandshakeKind;
use rustls::pki_types::CertificateDer;
use rustls::quic::Connection;

/// The negotiated results of a complete handshake.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) alpn: Option<Box<[u8]>>,
    pub(super) server_name: Option<Box<str>>,
    pub(super) certificates: Option<Box<[CertificateDer<'static>]>>,
    pub(super) kind: Option<HandshakeKind>,
}

impl Outcome {
    pub(super) fn of(tls: &Connection) -> Self {
        Self {
            alpn: tls.alpn_protocol().map(Into::into),
            server_name: server_name(tls).map(Into::into),
            certificates: tls.peer_certificates().map(Into::into),
            kind: tls.handshake_kind(),
        }
    }
}

/// The server name that the client requested; `None` at a client.
pub(super) fn server_name(tls: &Connection) -> Option<&str> {
    match tls {
        Connection::Client(_) => None,
        Connection::Server(tls) => tls.server_name(),
    }
}
