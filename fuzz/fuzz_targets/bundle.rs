//! Arbitrary events of the members of a bundle. Checks the smallest window, the sum of windows, and that directives agree
//! with decisions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_bundle;

fuzz_target!(|input: &[u8]| {
    check_bundle(input);
});
