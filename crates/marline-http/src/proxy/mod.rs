//! Proxies: [`Site`](crate::server::Site)s that pass requests on. A reverse proxy passes them on to applications, a
//! gateway to an origin that a [`Client`](crate::client::Client) reaches, a forward proxy to the client's destination.
//!
//! ```text
//! client -> server (HTTP/3, 2, 1.1) -> reverse -> upstream: HTTP/1.1, 2 or 3, with or without TLS -> application
//!                                         |
//!                                       fields: what belongs to one connection, and who the client is
//! ```

mod balance;
mod config;
mod connections;
mod content;
mod failure;
mod fields;
mod forward;
mod gateway;
mod health;
mod pipe_metrics;
mod request_body;
mod request_slots;
mod retry;
mod reverse;
#[cfg(test)]
mod testing;
mod tls;
mod tunnel;
mod upstream;
mod upstream_metrics;
mod upstreams;
mod url;
mod websocket;

pub use self::balance::{Balance, InvalidBalance};
pub use self::config::{ClientFields, ForwardedFields, ProxyConfig, RewriteFields};
pub use self::forward::{AllowedHost, ForwardConfig, InvalidHost, forward_proxy};
pub use self::gateway::{GatewayConfig, HostName, Hosts, InvalidHostName, gateway};
pub use self::health::{HealthPath, InvalidHealthPath};
pub use self::pipe_metrics::PipeMetrics;
pub use self::reverse::reverse_proxy;
pub use self::tls::{InvalidTlsName, TlsName, UpstreamTls, UpstreamTlsError};
pub use self::upstream_metrics::UpstreamMetrics;
pub use self::url::{InvalidUpstream, UpstreamProtocol, UpstreamUrl, WeightedUpstream};
