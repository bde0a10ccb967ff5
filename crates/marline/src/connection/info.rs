//! What can be known of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use marline_proto::observe::ConnectionStats;
use marline_proto::{ConnectionId, Side};
use rustls::pki_types::CertificateDer;

use super::Connection;

impl Connection {
    /// Which end this is.
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// The first destination connection ID that the client chose: the connection's name in logs.
    pub fn original_destination(&self) -> ConnectionId {
        self.0.lock().proto.original_destination()
    }

    /// Counters of packets, bytes, frames and losses so far.
    pub fn stats(&self) -> ConnectionStats {
        self.0.lock().proto.stats()
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.0.lock().proto.rtt()
    }

    /// The peer's address now; it changes when the peer migrates.
    pub fn remote_address(&self) -> SocketAddr {
        canonical(self.0.lock().proto.remote_address())
    }

    /// This side's address; the IP is unspecified while the system does not tell it.
    pub fn local_address(&self) -> SocketAddr {
        canonical(self.0.lock().proto.local_address())
    }

    /// The application protocol that TLS agreed on; `None` before that.
    pub fn alpn(&self) -> Option<Bytes> {
        self.0.lock().proto.alpn().map(Bytes::copy_from_slice)
    }

    /// The server's name: what this client asked for, or what the client asks this server for.
    pub fn server_name(&self) -> Option<String> {
        self.0.lock().proto.server_name().map(str::to_owned)
    }

    /// The peer's certificates, its own first; `None` if it showed none, or not yet.
    pub fn peer_certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        self.0
            .lock()
            .proto
            .peer_certificates()
            .map(<[CertificateDer<'static>]>::to_vec)
    }

    /// The number of the bundle whose engine coordinates what this end sends on the connection, within its
    /// endpoint; `None` if the connection is on its own.
    pub fn bundle(&self) -> Option<u64> {
        self.0.lock().proto.bundle()
    }

    /// The congestion window that the present path began with, in bytes; it is settled when
    /// [`connected`](Self::connected).
    pub fn initial_window(&self) -> u64 {
        self.0.lock().proto.initial_window()
    }

    /// Client: whether the server says that it coordinates the connections of a bundle; known when
    /// [`connected`](Self::connected).
    pub fn peer_coordinates_bundles(&self) -> bool {
        self.0.lock().proto.peer_coordinates_bundles()
    }

    /// Whether an earlier session was resumed; known when [`connected`](Self::connected).
    pub fn is_resumed(&self) -> bool {
        self.0.lock().proto.is_resumed()
    }

    /// Whether the server took the client's 0-RTT data; known when [`connected`](Self::connected).
    pub fn early_data_accepted(&self) -> bool {
        self.0.lock().proto.is_early_data_accepted()
    }

    /// On a server: whether what arrived so far may be an attacker's repetition, because it came before
    /// the handshake was complete (RFC 9001, section 9.2). Answer only what is safe to happen twice.
    pub fn is_replayable(&self) -> bool {
        self.0.lock().proto.is_replayable()
    }

    /// Fills `output` with key material that only the two ends know (RFC 8446, section 7.5).
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

/// An IPv4 address of a dual-stack socket, as people write it.
fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}
