//! QUIC under HTTP/3: its settings, logs, and the causes of failed handshakes.

mod config;
mod diagnosis;
mod key_log;
mod qlog;

pub use self::config::{Observers, QuicOptions, observed};
pub(crate) use self::config::{both, endpoint, observer};
pub(crate) use self::diagnosis::{HandshakeFailure, classify};
pub use self::key_log::KeyLogFile;
pub(crate) use self::qlog::Budget as QlogBudget;
pub use self::qlog::{QlogLimits, observer as qlog_observer};
