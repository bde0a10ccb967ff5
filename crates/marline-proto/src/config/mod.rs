//! What an application may choose: plain structs with sane defaults.

mod endpoint;
mod peer;
mod transport;

pub use endpoint::{EndpointConfig, RetryPolicy};
pub use peer::{ClientConfig, ConnectionInfo, MakeObserver, ServerConfig};
pub use transport::{AckFrequencyConfig, MtuConfig, TransportConfig};
