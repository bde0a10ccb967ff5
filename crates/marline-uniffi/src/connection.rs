//! QUIC connections: streams, datagrams, paths and statistics.

use std::sync::Arc;
use std::time::Duration;

use marline::PathId;
use marline::observe::PathStage;
use marline_ffi::connection;

use crate::failure::MarlineError;
use crate::stream::Stream;

/// A QUIC connection. It is closed when nothing else uses it: no stream, no response.
#[derive(uniffi::Object)]
pub struct Connection {
    inner: connection::Connection,
}

/// Statistics of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Statistics {
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Duration of the handshake; 0 before it is complete.
    pub handshake: Duration,
    /// Bytes of UDP datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of UDP datagrams received.
    pub bytes_received: u64,
    /// Packets that were declared lost.
    pub packets_lost: u64,
}

/// Statistics of a path.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct PathStatistics {
    /// The path ID.
    pub id: u32,
    /// The address of this host, if it is known.
    pub local: Option<String>,
    /// The address of the peer.
    pub remote: String,
    /// Whether it carries data: it is validated, not suspected to have failed, and not abandoned.
    pub is_open: bool,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Bytes of UDP datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of UDP datagrams received.
    pub bytes_received: u64,
    /// Packets that were declared lost.
    pub packets_lost: u64,
}

impl Connection {
    pub(crate) fn new(inner: connection::Connection) -> Self {
        Self { inner }
    }
}

#[uniffi::export]
impl Connection {
    /// Opens a stream, in both directions or only from here to the peer. Waits until the peer allows one more.
    ///
    /// # Errors
    /// If the connection ends before.
    pub fn open_stream(&self, bidirectional: bool) -> Result<Arc<Stream>, MarlineError> {
        Ok(Arc::new(Stream::new(self.inner.open(bidirectional)?)))
    }

    /// Waits for a stream of the peer, in both directions or only from it.
    ///
    /// # Errors
    /// If the connection ends before.
    pub fn accept_stream(&self, bidirectional: bool) -> Result<Arc<Stream>, MarlineError> {
        Ok(Arc::new(Stream::new(self.inner.accept(bidirectional)?)))
    }

    /// The length of the largest datagram that can be sent, in bytes; 0 if the peer takes none.
    pub fn datagram_limit(&self) -> u64 {
        self.inner.datagram_limit() as u64
    }

    /// Sends a datagram, which is not retransmitted.
    ///
    /// # Errors
    /// If it is too long, or the connection has ended.
    pub fn send_datagram(&self, data: Vec<u8>) -> Result<(), MarlineError> {
        Ok(self.inner.send_datagram(data.into())?)
    }

    /// Waits for a datagram at most so long; none if none arrives in time.
    ///
    /// # Errors
    /// If the connection ends before.
    pub fn receive_datagram(&self, limit: Duration) -> Result<Option<Vec<u8>>, MarlineError> {
        Ok(self.inner.datagram(limit)?.map(Into::into))
    }

    /// Opens a path from an address of this host, as "192.0.2.1", and waits until it is validated. Both ends need several paths:
    /// the option `profile` "multipath". Returns its path ID.
    ///
    /// # Errors
    /// If `local` is not an address, an end does not support several paths, or the path is not validated.
    pub fn open_path(&self, local: &str) -> Result<u32, MarlineError> {
        Ok(self.inner.open_path(local)?.0)
    }

    /// Abandons a path.
    ///
    /// # Errors
    /// If there is no such path, or it is the last.
    pub fn abandon_path(&self, id: u32) -> Result<(), MarlineError> {
        Ok(self.inner.abandon_path(PathId(id))?)
    }

    /// Statistics of its paths.
    pub fn paths(&self) -> Vec<PathStatistics> {
        let paths = self.inner.paths().into_iter().map(|path| PathStatistics {
            id: path.id.0,
            local: path.local.map(|local| local.to_string()),
            remote: path.remote.to_string(),
            is_open: path.stage == PathStage::Open,
            smoothed_rtt: path.smoothed_rtt,
            congestion_window: path.congestion_window,
            bytes_in_flight: path.bytes_in_flight,
            bytes_sent: path.udp_sent.bytes,
            bytes_received: path.udp_received.bytes,
            packets_lost: path.packets_lost,
        });
        paths.collect()
    }

    /// Its statistics.
    pub fn statistics(&self) -> Statistics {
        let statistics = self.inner.statistics();
        Statistics {
            smoothed_rtt: Duration::from_nanos(statistics.smoothed_rtt_ns),
            handshake: Duration::from_nanos(statistics.handshake_ns),
            bytes_sent: statistics.bytes_sent,
            bytes_received: statistics.bytes_received,
            packets_lost: statistics.packets_lost,
        }
    }

    /// Closes it with an error code of the application's protocol; its streams and datagrams end.
    pub fn close_with(&self, code: u64) {
        self.inner.close(code);
    }
}
