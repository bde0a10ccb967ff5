//! Arbitrary transport parameters. Checks that accepted ones do not change when they are written
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_transport_parameters;

fuzz_target!(|bytes: &[u8]| {
    check_transport_parameters(bytes);
});
