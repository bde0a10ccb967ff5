//! The results of a run.

use marline::Sha256;
use serde::Serialize;

/// The results of a run. Times are in nanoseconds since the client began to connect, and no number is a float, so that
/// equal runs have equal texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// When the last object was complete; `None` if some were not at the limit of time.
    pub finished_ns: Option<u64>,
    /// The objects, in the order of the page.
    pub objects: Vec<ObjectTimes>,
    /// The width of bins of time.
    pub bin_ns: u64,
    /// Events on each link from the server to the client.
    pub links: Vec<LinkRecord>,
    /// Packets of the server's connections.
    pub packets: Packets,
}

/// The times of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ObjectTimes {
    /// Its path.
    pub path: String,
    /// Its kind.
    pub kind: String,
    /// Bytes of content.
    pub size: u64,
    /// When it was requested.
    pub requested_ns: Option<u64>,
    /// When the first bytes of its content arrived.
    pub first_byte_ns: Option<u64>,
    /// Bytes of content that arrived in order, by bins of equal width.
    pub arrived: Vec<u64>,
    /// When it was complete.
    pub finished_ns: Option<u64>,
}

/// Events on a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkRecord {
    /// Bytes of IP packets that arrived, by bins of equal width.
    pub arrived: Vec<u64>,
    /// Packets that the link lost.
    pub lost: Vec<LostPacket>,
}

/// A packet that a link lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LostPacket {
    /// When.
    pub at_ns: u64,
    /// Why.
    pub reason: &'static str,
}

/// Packets as the server's connections see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Packets sent.
    pub sent: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Of these, packets that had arrived after all.
    pub spurious: u64,
}

impl Outcome {
    /// The outcome as JSON; the same results are the same bytes.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("it has neither maps nor errors of its own")
    }

    /// The SHA-256 of [`json`](Self::json), in hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.json().as_bytes());
        let digits = digest.finish();
        digits.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
