//! HTTP/3 over QUIC connections: moves bytes between the streams of a [`QuicTransport`] and the state machine of
//! `marline-h3`, for the tasks of requests.
//!
//! A session is shared by all tasks of a connection. Each request is a stream that its own task reads and writes; the
//! driver is polled by one task, and owns control and QPACK streams.

mod datagrams;
mod driver;
mod error;
mod request;
mod session;
#[cfg(test)]
mod tests;
mod transport;
mod woken;

use std::hash::{DefaultHasher, Hash, Hasher};

use marline::TransportConfig;
use marline_h3::Config;

pub use self::datagrams::{Datagrams, EncodedDatagram};
pub(crate) use self::driver::Begun;
pub(crate) use self::error::RequestError;
pub(crate) use self::request::{Receiver, RequestStream, Sender};
pub(crate) use self::session::Session;
pub use self::transport::{BidiStream, QuicRecv, QuicSend, QuicTransport};

/// The extensions of HTTP/3 that an end accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extensions {
    /// Extended CONNECT (RFC 9220).
    pub(crate) connect_protocol: bool,
    /// HTTP datagrams (RFC 9297), unless QUIC refuses datagrams.
    pub(crate) datagrams: bool,
}

/// The configuration of one end of `connection`, which accepts header sections of `max_header_bytes` and these `extensions`, and
/// greases if QUIC does.
pub(crate) fn config(
    max_header_bytes: u32,
    extensions: Extensions,
    connection: &marline::Connection,
    transport: &TransportConfig,
) -> Config {
    // Different for each connection, and the same when a simulation is repeated.
    let mut hasher = DefaultHasher::new();
    connection.original_destination().hash(&mut hasher);
    Config {
        max_field_section_size: max_header_bytes.into(),
        enable_connect_protocol: extensions.connect_protocol,
        h3_datagram: extensions.datagrams && transport.datagram_receive_buffer.is_some(),
        grease: transport.grease.then(|| hasher.finish()),
        ..Config::default()
    }
}

/// The priority of a stream, by that of its response.
pub(crate) fn transport_priority(priority: marline_h3::Priority) -> marline::Priority {
    marline::Priority::new(priority.urgency, priority.incremental)
}
