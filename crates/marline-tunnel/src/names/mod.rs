//! The names whose packets go into a client's tunnel.
//!
//! `forwarder` answers the queries of this host as its resolvers do. What it learns of the addresses of selected names is in
//! `learned`, for the routes into the tunnel in `routes`, before a program has the answer. `message` reads the messages.

pub(crate) mod forwarder;
pub(crate) mod learned;
pub(crate) mod message;
pub(crate) mod routes;

pub use self::message::{InvalidName, Name};
