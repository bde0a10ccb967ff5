//! What a path was seen to carry, in the hands of the client.

use std::time::Duration;

use marline_wire::{Reader, Truncated};

/// A capacity for careful resume (RFC 9959), as a token has it: window (8 bytes), least round-trip time in
/// microseconds (4), when it was observed (8), by whom (8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    /// A window of which acknowledgments have told that the path carries it, in bytes.
    pub(crate) window: u64,
    /// The least round-trip time then, in whole microseconds up to 71 minutes.
    pub(crate) rtt: Duration,
    /// When that was, in seconds since the Unix epoch.
    pub(crate) observed: u64,
    /// Names the connection that observed it on one path: its tokens tell of one thing.
    pub(crate) source: u64,
}

impl Carried {
    /// Bytes that it takes.
    #[cfg(test)]
    pub(super) const LEN: usize = 8 + 4 + 8 + 8;

    /// How old it is at `now`, in seconds since the Unix epoch.
    pub(crate) fn age(&self, now: u64) -> Duration {
        Duration::from_secs(now.saturating_sub(self.observed))
    }

    pub(super) fn encode(&self, buf: &mut Vec<u8>) {
        let micros = u32::try_from(self.rtt.as_micros()).unwrap_or(u32::MAX);
        buf.extend_from_slice(&self.window.to_be_bytes());
        buf.extend_from_slice(&micros.to_be_bytes());
        buf.extend_from_slice(&self.observed.to_be_bytes());
        buf.extend_from_slice(&self.source.to_be_bytes());
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(Self {
            window: u64::from_be_bytes(reader.array()?),
            rtt: Duration::from_micros(u32::from_be_bytes(reader.array()?).into()),
            observed: u64::from_be_bytes(reader.array()?),
            source: u64::from_be_bytes(reader.array()?),
        })
    }
}
