//! A reverse proxy: a [`Site`](crate::server::Site) that passes requests on to applications.
//!
//! ```text
//! client -> server (HTTP/3, 2, 1.1) -> reverse -> upstream: HTTP/1.1 or 2 without TLS -> application
//!                                         |
//!                                       fields: what belongs to one connection, and who the client is
//! ```

mod config;
mod content;
mod failure;
mod fields;
mod health;
mod request_body;
mod reverse;
mod upstream;

pub use self::config::{ClientFields, ForwardedFields, InvalidUpstream, ProxyConfig, UpstreamUrl};
pub use self::reverse::reverse_proxy;
