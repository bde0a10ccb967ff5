//! Arbitrary events of a path that resumes from an arbitrary saved capacity. Checks the rules of RFC 9959.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_careful_resume;

fuzz_target!(|input: &[u8]| {
    check_careful_resume(input);
});
