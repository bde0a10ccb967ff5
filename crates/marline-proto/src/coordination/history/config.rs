//! Settings of history.

use std::time::Duration;

use super::{Average, PathScope};

/// The initial window of a connection whose session was resumed, with 0-RTT data or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZeroRtt {
    /// That of the peer's previous connection while that connection is open, as the paper has it; otherwise
    /// that of a full handshake.
    Carry,
    /// That of a full handshake. Most returning clients resume their session, and would hardly ever profit
    /// otherwise.
    History,
    /// The default window.
    Default,
}

/// How connections learn from earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryConfig {
    /// How the windows of connections are averaged.
    pub average: Average,
    /// Which connections learn from each other.
    pub scope: PathScope,
    /// Whether only connections with the same server name do.
    pub per_server_name: bool,
    /// The initial window of resumed sessions.
    pub zero_rtt: ZeroRtt,
    /// The largest initial window that an average leads to, in bytes; a larger default is not reduced.
    pub cap: Option<u64>,
    /// Whether the window of a connection that was always app-limited counts only if it is above the
    /// average: a lower one does not show that the path carries less.
    pub raise_only_when_limited: bool,
    /// How long a record is valid after its latest update.
    pub lifetime: Duration,
}

impl HistoryConfig {
    /// The algorithm as published. The paper does not specify `scope` and `lifetime`: here one address,
    /// and without end.
    pub fn published() -> Self {
        Self {
            average: Average::Mean,
            scope: PathScope::Address,
            per_server_name: false,
            zero_rtt: ZeroRtt::Carry,
            cap: None,
            raise_only_when_limited: false,
            lifetime: Duration::MAX,
        }
    }
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self {
            average: Average::Ewma { weight: 0.125 },
            scope: PathScope::default(),
            per_server_name: true,
            zero_rtt: ZeroRtt::History,
            // 200 datagrams of the minimum size of QUIC.
            cap: Some(200 * 1200),
            raise_only_when_limited: true,
            lifetime: Duration::from_secs(3600),
        }
    }
}
