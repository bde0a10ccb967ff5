//! Overlapping segments of a stream in any order. Checks that the stream is reassembled in bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::check_reassembly;

fuzz_target!(|pieces: Vec<(u16, u16, Option<u16>)>| {
    check_reassembly(&pieces);
});
