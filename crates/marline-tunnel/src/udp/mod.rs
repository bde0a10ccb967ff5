//! UDP through a server: CONNECT-UDP (RFC 9298), proxy and client.
//!
//! Each request has a socket at the server, which is connected to one destination. Its payloads are HTTP datagrams with context ID
//! 0, or capsules between ends without datagrams.

#[cfg(target_os = "linux")]
pub mod client;
#[cfg(target_os = "linux")]
pub(crate) mod server;
pub mod target;

/// The protocol of extended CONNECT.
pub const PROTOCOL: &str = "connect-udp";

#[cfg(target_os = "linux")]
mod flow;
