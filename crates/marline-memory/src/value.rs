//! Encoding of records with the time of writing.

use std::time::Duration;

use marline_proto::Instant;
use marline_proto::coordination::history::PathRecord;

/// Length of the time stamp in bytes: milliseconds since 1970, big endian.
const STAMP: usize = 8;

/// Maximum length of an encoded record in bytes.
pub(crate) const MAX_VALUE: usize = STAMP + PathRecord::MAX_ENCODED;

/// Encodes a record at `now`, which is `unix_time` on the wall clock.
pub(crate) fn encode(record: &PathRecord, now: Instant, unix_time: Duration) -> Vec<u8> {
    let mut bytes = millis(unix_time).to_be_bytes().to_vec();
    bytes.extend_from_slice(&record.encode(now));
    bytes
}

/// Whether the time stamp is in the future of the wall clock.
pub(crate) fn is_ahead(bytes: &[u8], unix_time: Duration) -> bool {
    let stamp = bytes.first_chunk().map(|stamp| u64::from_be_bytes(*stamp));
    stamp.is_some_and(|stamp| stamp > millis(unix_time))
}

/// Decodes an encoded record and adds the time passed since to its ages. If the wall clock went backwards
/// since, the ages are unchanged.
///
/// `None` if the bytes are malformed.
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
