//! Configuration: plain structs with sensible defaults.

mod client_limits;
mod ecn;
mod endpoint;
mod multipath;
mod peer;
mod transport;
mod windows;

pub use client_limits::ClientLimits;
pub use ecn::EcnMode;
pub use endpoint::{EndpointConfig, RetryPolicy};
pub use multipath::MultipathConfig;
pub use peer::{ClientConfig, ConnectionInfo, MakeObserver, ServerConfig};
pub use transport::{MtuConfig, TransportConfig};

#[cfg(test)]
mod tests;
