//! HTTP/3 without I/O: the bytes of QUIC streams to messages, and back.
//!
//! A [`Connection`] is one end of an HTTP/3 connection (RFC 9114). It takes the bytes that arrive on streams, cut
//! anywhere, and returns events: those of one request stream by [`Connection::poll_stream`], those of the connection by
//! [`Connection::poll_event`]. Bytes for its control and QPACK streams are returned by [`Connection::poll_transmit`];
//! messages are encoded by calls that return the bytes to write.
//!
//! Errors have two scopes. An [`Error`] ends the connection: the caller closes it with the code and the reason.
//! A [`StreamError`] ends one request: the caller resets and stops its stream.

pub mod capsule;
pub mod connection;
pub mod datagram;
pub mod error;
pub mod frame;
pub mod limits;
pub mod message;
pub mod priority;
pub mod qpack;
pub mod settings;

pub use marline_wire::{Dir, Side, StreamId};

pub use crate::connection::{
    Config, Connection, Event, LocalStream, RequestHead, SendError, StreamEvent, Transmit,
};
pub use crate::error::{Error, ErrorCode, StreamError};
pub use crate::message::{Protocol, has_blank_ends, is_authority, without_empty_port};
pub use crate::priority::Priority;
pub use crate::settings::Settings;
