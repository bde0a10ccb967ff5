//! The tasks, and their metrics.

use clap::ValueEnum;
use serde::Serialize;

/// A task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Task {
    /// One download on one stream: 1 GiB.
    Bulk,
    /// Requests of 1 KiB, one at a time.
    Requests1,
    /// Requests of 1 KiB, 100 at once.
    Requests100,
    /// Full handshakes, one at a time.
    Handshakes,
    /// The server's memory for 2,000 idle connections.
    Memory,
}

/// A metric.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    BulkGbitS,
    BulkServerCpuSPerGib,
    BulkClientCpuSPerGib,
    RequestsS,
    RequestsServerCpuUs,
    RequestsClientCpuUs,
    ConcurrentRequestsS,
    ConcurrentRequestsServerCpuUs,
    ConcurrentRequestsClientCpuUs,
    HandshakesS,
    HandshakeServerCpuUs,
    HandshakeClientCpuUs,
    IdleConnectionBytes,
}

impl Task {
    pub(crate) const ALL: [Self; 5] = [
        Self::Bulk,
        Self::Requests1,
        Self::Requests100,
        Self::Handshakes,
        Self::Memory,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Requests1 => "requests1",
            Self::Requests100 => "requests100",
            Self::Handshakes => "handshakes",
            Self::Memory => "memory",
        }
    }

    /// Arguments of the client.
    pub(crate) fn arguments(self, quick: bool) -> Vec<String> {
        let seconds = if quick { 0.5 } else { 2.0 };
        let text = match self {
            Self::Bulk => format!("bulk --bytes {}", bulk_bytes(quick)),
            Self::Requests1 => format!("requests --bytes 1024 --seconds {seconds}"),
            Self::Requests100 => {
                format!("requests --bytes 1024 --concurrency 100 --seconds {seconds}")
            }
            Self::Handshakes => format!("handshakes --seconds {seconds}"),
            Self::Memory => format!("idle --connections {IDLE_CONNECTIONS}"),
        };
        text.split(' ').map(String::from).collect()
    }
}

/// Length of a bulk download, bytes.
pub(crate) fn bulk_bytes(quick: bool) -> u64 {
    if quick { 1 << 28 } else { 1 << 30 }
}

/// Idle connections to measure memory with.
pub(crate) const IDLE_CONNECTIONS: usize = 2000;

impl Metric {
    /// The name of the metric in JSON.
    pub(crate) fn key(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.and_then(|name| name.as_str().map(String::from))
            .unwrap_or_default()
    }
}
