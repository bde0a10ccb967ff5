//! What can be chosen about history.

use std::time::Duration;

use super::{Average, PathScope};

/// How a connection begins whose session was resumed, be it with early data or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZeroRtt {
    /// With the window of its peer's previous connection while that is alive, as the paper has it; like one
    /// with a full handshake otherwise.
    Carry,
    /// Like one with a full handshake: who comes back resumes, and would hardly ever profit otherwise.
    History,
    /// With the default window.
    Default,
}

/// How first windows are learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryConfig {
    /// What is made of the windows that were seen.
    pub average: Average,
    /// Which connections learn from each other.
    pub scope: PathScope,
    /// Whether only those that ask for the same server do.
    pub per_server_name: bool,
    /// How resumed sessions begin.
    pub zero_rtt: ZeroRtt,
    /// The most that an average can make of a first window, in bytes; a larger default stays what it is.
    pub cap: Option<u64>,
    /// Whether the window of a connection that it never limited counts only where it is above average:
    /// such a window is low for want of data, not of room.
    pub raise_only_when_limited: bool,
    /// How long what was learnt holds.
    pub lifetime: Duration,
}

impl HistoryConfig {
    /// As published, which is silent about `scope` and `lifetime`: one address, for good.
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
            // 200 datagrams that every path carries.
            cap: Some(200 * 1200),
            raise_only_when_limited: true,
            lifetime: Duration::from_secs(3600),
        }
    }
}
