//! The report of pools.

use serde::Serialize;

/// The state of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PipeState {
    /// It carries objects, or has carried some and is open.
    Used,
    /// It was opened in advance, and has carried none.
    Spare,
    /// It was idle for too long.
    Closed,
}

/// A pipe of a pool.
#[derive(Clone, Debug, Serialize)]
pub struct PipeReport {
    /// The host and port that it leads to.
    pub origin: String,
    /// Its number in the pool, from 0.
    pub pipe: usize,
    /// Its state.
    pub state: PipeState,
    /// The IDs of its connections, one after another: those that were open when the fetch or page load began, and those
    /// that it opened.
    pub connections: Vec<u64>,
    /// The number of objects assigned to it, including those of the client's earlier fetches.
    pub objects: u64,
    /// Bytes of content that it carried, including those of earlier fetches.
    pub bytes: u64,
}
