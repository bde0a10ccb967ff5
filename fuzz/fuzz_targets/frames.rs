//! Arbitrary payloads. Checks that decoding does not panic, yields at most one frame per byte, and that
//! an encoded frame decodes to the same frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_frames;

fuzz_target!(|payload: &[u8]| {
    check_frames(payload);
});
