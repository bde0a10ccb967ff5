//! Arbitrary keys and values of stores of history, as a file or a shared server returns them. Checks that encodings are unique,
//! and that what is learnt from a record is within bounds.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use marline_memory::testing::{check_key, check_value};
use marline_proto::testing::fuzz::check_record;

fuzz_target!(|input: (u32, &[u8])| {
    let (unix_time, bytes) = input;
    check_key(bytes);
    check_record(bytes);
    check_value(bytes, Duration::from_secs(unix_time.into()));
});
