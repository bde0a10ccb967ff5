//! Arbitrary content of address tokens. Checks that a token is accepted only where, when and as it was issued.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_address_token;

fuzz_target!(|input: &[u8]| {
    check_address_token(input);
});
