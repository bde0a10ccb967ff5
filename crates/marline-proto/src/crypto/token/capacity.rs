//! The capacity of a path in an address validation token.

use std::time::Duration;

use marline_wire::{Reader, Truncated};

/// A capacity for careful resume (RFC 9959). Layout in a token: window (8 bytes), minimum round-trip time
/// in microseconds (4), time of observation (8), source (8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenCapacity {
    /// Congestion window confirmed by acknowledgments, in bytes.
    pub(crate) window: u64,
    /// Minimum round-trip time at that time, in whole microseconds up to 71 minutes.
    pub(crate) rtt: Duration,
    /// Time of observation, in seconds since the Unix epoch.
    pub(crate) observed: u64,
    /// Identifies the path of the connection that observed it; equal in all tokens of that path.
    pub(crate) source: u64,
}

impl TokenCapacity {
    /// Encoded length, in bytes.
    #[cfg(test)]
    pub(super) const LEN: usize = 8 + 4 + 8 + 8;

    /// Its age at `now` (seconds since the Unix epoch).
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
