//! Checks that expansion inverts truncation within the window of RFC 9000, appendix A.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_packet_number;

fuzz_target!(|input: (u64, Option<u64>, u32, u8)| {
    let (number, largest, truncated, len) = input;
    check_packet_number(number, largest, truncated, len);
});
