//! State and statistics of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use marline_proto::observe::ConnectionStats;
use marline_proto::{ConnectionId, Side};
use rustls::pki_types::CertificateDer;

use super::Connection;

impl Connection {
    /// The side of this end.
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// The first destination connection ID that the client chose, which identifies the connection in logs.
    pub fn original_destination(&self) -> ConnectionId {
        self.0.lock().proto.original_destination()
    }

    /// Counters of packets, bytes, frames and losses so far.
    pub fn stats(&self) -> ConnectionStats {
        self.0.lock().proto.stats()
    }

    /// Bytes that were written to streams, and that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.0.lock().proto.all_unacknowledged()
    }

    /// Bytes that the peer has sent on streams, and that were not read.
    pub fn unread(&self) -> u64 {
        self.0.lock().proto.unread()
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.0.lock().proto.rtt()
    }

    /// The peer's address now; it changes when the peer migrates.
    pub fn remote_address(&self) -> SocketAddr {
        canonical(self.0.lock().proto.remote_address())
    }

    /// This side's address; the IP is unspecified while the system does not report it.
    pub fn local_address(&self) -> SocketAddr {
        canonical(self.0.lock().proto.local_address())
    }

    /// The application protocol that TLS agreed on; `None` before that.
    pub fn alpn(&self) -> Option<Bytes> {
        self.0.lock().proto.alpn().map(Bytes::copy_from_slice)
    }

    /// The server name (SNI): the one this client sent, or the one that this server's client sent.
    pub fn server_name(&self) -> Option<String> {
        self.0.lock().proto.server_name().map(str::to_owned)
    }

    /// The peer's certificates, the end-entity certificate first; `None` if it sent none, or not yet. A
    /// session that is resumed has those of its first handshake, at a server with its first requests.
    pub fn peer_certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        self.0
            .lock()
            .proto
            .peer_certificates()
            .map(<[CertificateDer<'static>]>::to_vec)
    }

    /// The number, within its endpoint, of the bundle whose engine coordinates what this end sends on the
    /// connection; `None` if the connection is in no bundle.
    pub fn bundle(&self) -> Option<u64> {
        self.0.lock().proto.bundle()
    }

    /// The initial congestion window of the present path, in bytes; final when
    /// [`connected`](Self::connected).
    pub fn initial_window(&self) -> u64 {
        self.0.lock().proto.initial_window()
    }

    /// Client: whether the server announced that it coordinates the connections of a bundle; known when
    /// [`connected`](Self::connected).
    pub fn peer_coordinates_bundles(&self) -> bool {
        self.0.lock().proto.peer_coordinates_bundles()
    }

    /// Whether an earlier session was resumed; known when [`connected`](Self::connected).
    pub fn is_resumed(&self) -> bool {
        self.0.lock().proto.is_resumed()
    }

    /// Whether the server accepted the client's 0-RTT data; known when [`connected`](Self::connected).
    pub fn early_data_accepted(&self) -> bool {
        self.0.lock().proto.is_early_data_accepted()
    }

    /// On a server: whether what arrived so far may be replayed by an attacker, because it came before the
    /// handshake was complete (RFC 9001, section 9.2). Process only what is safe to be processed twice.
    pub fn is_replayable(&self) -> bool {
        self.0.lock().proto.is_replayable()
    }

    /// Fills `output` with exported keying material (RFC 8446, section 7.5).
    ///
    /// # Errors
    /// The handshake is not complete, or a server does not keep its exporter.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), rustls::Error> {
        self.0
            .lock()
            .proto
            .export_keying_material(output, label, context)
    }

    /// Whether data can be sent before the handshake is complete: 0-RTT, or 0.5-RTT on a server.
    pub(super) fn can_send_early(&self) -> bool {
        self.0.side.is_server() || self.0.lock().proto.has_zero_rtt()
    }
}

/// The address with an IPv4-mapped IPv6 address, as of a dual-stack socket, written as IPv4.
fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}
