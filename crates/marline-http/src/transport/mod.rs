//! An adapter of marline's connections and streams to the h3 crate.

mod carrier;
mod config;
mod connection;
mod diagnosis;
mod frame_limit;
mod handover;
mod qlog;
mod stream;

use bytes::Bytes;

pub use self::carrier::{Carrier, CarrierStream};
pub use self::config::{Observers, QuicOptions, observed};
pub(crate) use self::config::{both, client_config, endpoint, server_endpoint};
pub use self::connection::{Connection, Opener};
pub(crate) use self::diagnosis::{HandshakeFailure, classify};
pub(crate) use self::handover::{send_data, send_response};
pub use self::qlog::observer as qlog_observer;
pub use self::stream::{BidiStream, RecvStream, SendStream};

/// Sends requests on an HTTP/3 connection.
pub(crate) type SendRequest = h3::client::SendRequest<Opener, Bytes>;

/// A request that was sent, and its response.
pub(crate) type RequestStream = h3::client::RequestStream<BidiStream, Bytes>;
