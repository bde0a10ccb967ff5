//! What an application may choose: plain structs with sane defaults.

mod endpoint;
mod multipath;
mod peer;
mod transport;

pub use endpoint::{EndpointConfig, RetryPolicy};
pub use multipath::MultipathConfig;
pub use peer::{ClientConfig, ConnectionInfo, MakeObserver, ServerConfig};
pub use transport::{AckFrequencyConfig, MtuConfig, TransportConfig};
