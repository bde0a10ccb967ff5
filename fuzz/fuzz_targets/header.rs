//! Arbitrary datagrams. Checks that fields lie within the packet, and that routing agrees with parsing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_header;

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (id_len, clear_fixed_bit, bytes) = input;
    check_header(id_len, clear_fixed_bit, bytes);
});
