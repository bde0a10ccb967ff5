//! The names whose packets go into a client's tunnel.
//!
//! `forwarder` answers the queries of this host as its resolvers do. What it learns of the addresses of selected names is in
//! `learned`, for routes into the tunnel, before a program has the answer. `message` reads the messages.

pub(crate) mod forwarder;
pub(crate) mod learned;
pub(crate) mod message;

pub use self::message::{InvalidName, Name};
