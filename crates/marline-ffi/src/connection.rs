//! QUIC connections: streams, datagrams, paths and statistics.

use std::ffi::c_char;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use marline::observe::PathStage;
use marline::{ErrorCode, PathId, PathStats};
use tokio::runtime::Runtime;

use crate::failure::{Failure, at, at_mut, buffer, bytes, or, or_null, text};
use crate::stream::Stream;

/// A QUIC connection.
pub struct Connection {
    runtime: Arc<Runtime>,
    quic: marline::Connection,
}

/// Statistics of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The smoothed round-trip time, in nanoseconds.
    pub smoothed_rtt_ns: u64,
    /// Duration of the handshake, in nanoseconds; 0 before it is complete.
    pub handshake_ns: u64,
    /// Bytes of UDP datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of UDP datagrams received.
    pub bytes_received: u64,
    /// Packets that were declared lost.
    pub packets_lost: u64,
    /// The number of its paths.
    pub paths: u64,
}

/// Statistics of a path.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatistics {
    /// The path ID.
    pub id: u64,
    /// The address of this host, as text; empty if it is not known.
    pub local: [c_char; 64],
    /// The address of the peer, as text.
    pub remote: [c_char; 64],
    /// Whether it carries data: it is validated, not suspected to have failed, and not abandoned.
    pub is_open: bool,
    /// The smoothed round-trip time, in nanoseconds.
    pub smoothed_rtt_ns: u64,
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

impl PathStatistics {
    fn new(path: &PathStats) -> Self {
        Self {
            id: path.id.0.into(),
            local: path.local.map_or([0; 64], characters),
            remote: characters(path.remote),
            is_open: path.stage == PathStage::Open,
            smoothed_rtt_ns: nanoseconds(path.smoothed_rtt),
            congestion_window: path.congestion_window,
            bytes_in_flight: path.bytes_in_flight,
            bytes_sent: path.udp_sent.bytes,
            bytes_received: path.udp_received.bytes,
            packets_lost: path.packets_lost,
        }
    }
}

/// An address as text that ends with a zero byte; with a port, it has at most 58 bytes.
fn characters(address: SocketAddr) -> [c_char; 64] {
    let mut characters = [0; 64];
    let text = address.to_string();
    for (character, byte) in characters.iter_mut().zip(text.bytes().take(63)) {
        *character = byte as c_char;
    }
    characters
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Connection {
    pub(crate) fn new(runtime: Arc<Runtime>, quic: marline::Connection) -> Self {
        Self { runtime, quic }
    }

    /// Opens a stream, in both directions or only from here to the peer. Waits until the peer allows one more.
    ///
    /// # Errors
    /// If the connection ends before.
    pub fn open(&self, bidirectional: bool) -> Result<Stream, Failure> {
        let quic = &self.quic;
        let (send, receive) = self.runtime.block_on(async {
            match bidirectional {
                true => quic
                    .open_bi()
                    .await
                    .map(|(send, receive)| (send, Some(receive))),
                false => quic.open_uni().await.map(|send| (send, None)),
            }
        })?;
        Ok(Stream::new(Arc::clone(&self.runtime), Some(send), receive))
    }

    /// Waits for a stream of the peer, in both directions or only from it.
    ///
    /// # Errors
    /// If the connection ends before.
    pub fn accept(&self, bidirectional: bool) -> Result<Stream, Failure> {
        let quic = &self.quic;
        let (send, receive) = self.runtime.block_on(async {
            match bidirectional {
                true => quic
                    .accept_bi()
                    .await
                    .map(|(send, receive)| (Some(send), receive)),
                false => quic.accept_uni().await.map(|receive| (None, receive)),
            }
        })?;
        Ok(Stream::new(Arc::clone(&self.runtime), send, Some(receive)))
    }

    /// The length of the largest datagram that can be sent, in bytes; 0 if the peer takes none.
    pub fn datagram_limit(&self) -> usize {
        self.quic.max_datagram_len().unwrap_or(0)
    }

    /// Sends a datagram, which is not retransmitted.
    ///
    /// # Errors
    /// If it is too long, or the connection has ended.
    pub fn send_datagram(&self, datagram: Bytes) -> Result<(), Failure> {
        Ok(self.quic.send_datagram(datagram)?)
    }

    /// The next datagram; `None` if none arrives in time.
    ///
    /// # Errors
    /// If the connection ends before.
    pub fn datagram(&self, limit: Duration) -> Result<Option<Bytes>, Failure> {
        let quic = &self.quic;
        let received = self
            .runtime
            .block_on(async { tokio::time::timeout(limit, quic.recv_datagram()).await });
        match received {
            Ok(datagram) => Ok(Some(datagram?)),
            Err(_) => Ok(None),
        }
    }

    /// Opens a path from an address of this host, as "192.0.2.1", and waits until it is validated. Returns its path ID.
    ///
    /// # Errors
    /// If `local` is not an address, an end does not support several paths, or the path is not validated.
    pub fn open_path(&self, local: &str) -> Result<PathId, Failure> {
        let wrong = |_| Failure::new(format!("`{local}` is not an IP address"));
        let opening = self.quic.open_path(local.parse().map_err(wrong)?, None);
        Ok(self.runtime.block_on(opening)?)
    }

    /// Abandons a path.
    ///
    /// # Errors
    /// If there is no such path, or it is the last.
    pub fn abandon_path(&self, id: PathId) -> Result<(), Failure> {
        let reason = ErrorCode::APPLICATION_ABANDON_PATH;
        Ok(self.quic.abandon_path(id, reason)?)
    }

    /// Statistics of its paths.
    pub fn paths(&self) -> Vec<PathStats> {
        self.quic.paths()
    }

    /// Closes it with an error code of the application's protocol; its streams and datagrams end.
    pub fn close(&self, code: u64) {
        self.quic.close(code, b"");
    }

    /// Its statistics.
    pub fn statistics(&self) -> Statistics {
        let stats = self.quic.stats();
        Statistics {
            smoothed_rtt_ns: nanoseconds(self.quic.rtt()),
            handshake_ns: stats.handshake.map_or(0, nanoseconds),
            bytes_sent: stats.udp_sent.bytes,
            bytes_received: stats.udp_received.bytes,
            packets_lost: stats.packets_lost(),
            paths: stats.paths.len() as u64,
        }
    }
}

/// Opens a stream, in both directions or only from here to the peer. Waits until the peer allows one more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_open(
    connection: *const Connection,
    bidirectional: bool,
) -> *mut Stream {
    // SAFETY: as the header says.
    let connection = unsafe { at(connection, "connection") };
    or_null(connection.and_then(|connection| connection.open(bidirectional)))
}

/// Waits for a stream of the peer, in both directions or only from it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_accept(
    connection: *const Connection,
    bidirectional: bool,
) -> *mut Stream {
    // SAFETY: as the header says.
    let connection = unsafe { at(connection, "connection") };
    or_null(connection.and_then(|connection| connection.accept(bidirectional)))
}

/// The length of the largest datagram that can be sent; 0 if the peer takes none, and -1 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_datagram_limit(connection: *const Connection) -> isize {
    // SAFETY: as the header says.
    let limit = unsafe { at(connection, "connection") }
        .map(|connection| connection.datagram_limit() as isize);
    or(-1, limit)
}

/// Sends a datagram, which is not retransmitted. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_datagram_send(
    connection: *const Connection,
    data: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: as the header says.
    let sent = unsafe { at(connection, "connection") }.and_then(|connection| {
        // SAFETY: as the header says.
        let data = unsafe { bytes(data, length, "data") }?;
        connection.send_datagram(Bytes::copy_from_slice(data))
    });
    or(-1, sent.map(|()| 0))
}

/// Waits for a datagram at most so many milliseconds. Returns its length, of which what does not fit is lost, and -1 if none
/// arrives in time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_datagram_receive(
    connection: *const Connection,
    into: *mut u8,
    length: usize,
    timeout_ms: u64,
) -> isize {
    // SAFETY: as the header says.
    let received = unsafe { at(connection, "connection") }.and_then(|connection| {
        // SAFETY: as the header says.
        let into = unsafe { buffer(into, length, "into") }?;
        let datagram = connection.datagram(Duration::from_millis(timeout_ms))?;
        let none = || Failure::new("no datagram arrived in time");
        let datagram = datagram.ok_or_else(none)?;
        let fits = datagram.len().min(into.len());
        into[..fits].copy_from_slice(&datagram[..fits]);
        Ok(datagram.len() as isize)
    });
    or(-1, received)
}

/// Opens a path from an address of this host, as "192.0.2.1", and waits until it is validated. Both ends need several paths:
/// the option `profile` "multipath". Returns its path ID or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_path_open(
    connection: *const Connection,
    local: *const c_char,
) -> i64 {
    // SAFETY: as the header says.
    let opened = unsafe { at(connection, "connection") }.and_then(|connection| {
        // SAFETY: as the header says.
        let local = unsafe { text(local, "local") }?;
        connection.open_path(local)
    });
    or(-1, opened.map(|id| i64::from(id.0)))
}

/// Abandons a path. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_path_abandon(connection: *const Connection, id: u32) -> i32 {
    // SAFETY: as the header says.
    let abandoned = unsafe { at(connection, "connection") }
        .and_then(|connection| connection.abandon_path(PathId(id)));
    or(-1, abandoned.map(|()| 0))
}

/// Writes the statistics of up to `count` paths, and returns how many paths there are, or -1. `paths` may be NULL for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_connection_paths(
    connection: *const Connection,
    paths: *mut PathStatistics,
    count: usize,
) -> isize {
    // SAFETY: as the header says.
    let written = unsafe { at(connection, "connection") }.and_then(|connection| {
        let known = connection.paths();
        for (index, path) in known.iter().take(count).enumerate() {
            if paths.is_null() {
                return Err(Failure::new("paths is NULL"));
            }
            // SAFETY: there are `count`, as the header says; they may not be initialised.
            unsafe { paths.add(index).write(PathStatistics::new(path)) };
        }
        Ok(known.len() as isize)
    });
    or(-1, written)
}

/// Writes the statistics of a connection. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_connection_statistics(
    connection: *const Connection,
    statistics: *mut Statistics,
) -> i32 {
    // SAFETY: as the header says.
    let written = unsafe { at(connection, "connection") }.and_then(|connection| {
        // SAFETY: as the header says.
        *unsafe { at_mut(statistics, "statistics") }? = connection.statistics();
        Ok(0)
    });
    or(-1, written)
}

/// Closes a connection with an error code of the application's protocol; its streams and datagrams end. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_connection_close(connection: *const Connection, code: u64) -> i32 {
    // SAFETY: as the header says.
    let closed = unsafe { at(connection, "connection") }.map(|connection| {
        connection.close(code);
        0
    });
    or(-1, closed)
}

/// Frees a connection. It is closed when nothing else uses it: no stream, no response, no other of its handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_connection_free(connection: *mut Connection) {
    if !connection.is_null() {
        // SAFETY: it is from a function of this library, and not used again.
        drop(unsafe { Box::from_raw(connection) });
    }
}
