//! Checks by fuzz targets of keys and values that a file or a server returns.

use std::time::Duration;

use marline_proto::Instant;

use crate::{key, value};

/// Checks that each key has a single encoding.
///
/// # Panics
///
/// If another encoding is accepted.
pub fn check_key(bytes: &[u8]) {
    if let Some(decoded) = key::decode(bytes) {
        let encoded = key::encode(&decoded).expect("a key that was accepted");
        assert_eq!(encoded.as_bytes(), bytes);
        assert!(bytes.len() <= key::MAX_KEY);
    }
}

/// Checks a stored value, read when the wall clock is `unix_time`: an accepted record does not change when it is stored
/// again, and is from the past.
///
/// # Panics
///
/// If the record changes.
pub fn check_value(bytes: &[u8], unix_time: Duration) {
    let now = Instant::EPOCH + Duration::from_secs(1 << 32);
    let Some(record) = value::decode(bytes, now, unix_time) else {
        return;
    };
    assert!(record.seen_at <= now);
    let encoded = value::encode(&record, now, unix_time);
    assert!(encoded.len() <= value::MAX_VALUE && !value::is_ahead(&encoded, unix_time));
    let again = value::decode(&encoded, now, unix_time).expect("our own encoding");
    assert_eq!(value::encode(&again, now, unix_time), encoded);
}
