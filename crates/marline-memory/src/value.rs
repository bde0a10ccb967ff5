//! A record with the moment at which it was written: what a store keeps under a key.

use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::PathRecord;

/// The moment, in milliseconds since 1970, big endian.
const STAMP: usize = 8;

/// Bytes of a value, at most.
pub(crate) const MAX_VALUE: usize = STAMP + PathRecord::MAX_ENCODED;

/// Writes a record down at `now`, which is `unix_time` on the wall.
pub(crate) fn encode(record: &PathRecord, now: Instant, unix_time: Duration) -> Vec<u8> {
    let mut bytes = millis(unix_time).to_be_bytes().to_vec();
    bytes.extend_from_slice(&record.encode(now));
    bytes
}

/// Whether it was written at a moment that the wall has not reached.
pub(crate) fn is_ahead(bytes: &[u8], unix_time: Duration) -> bool {
    let stamp = bytes.first_chunk().map(|stamp| u64::from_be_bytes(*stamp));
    stamp.is_some_and(|stamp| stamp > millis(unix_time))
}

/// Reads what [`encode`] wrote; what passed since is added to the record's ages. A wall clock that went
/// backwards since adds nothing, and takes nothing away.
///
/// `None` for anything else.
pub(crate) fn decode(bytes: &[u8], now: Instant, unix_time: Duration) -> Option<PathRecord> {
    if bytes.len() > MAX_VALUE {
        return None;
    }
    let (stamp, record) = bytes.split_first_chunk()?;
    let passed = millis(unix_time).saturating_sub(u64::from_be_bytes(*stamp));
    PathRecord::decode(record, now - Duration::from_millis(passed)).ok()
}

fn millis(unix_time: Duration) -> u64 {
    u64::try_from(unix_time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
