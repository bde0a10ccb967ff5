//! Arbitrary transport parameters. Checks that encoding inverts decoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_wire::{Side, TransportParameters};

fuzz_target!(|bytes: &[u8]| {
    for side in [Side::Client, Side::Server] {
        if let Ok(params) = TransportParameters::decode(side, bytes) {
            let mut encoded = Vec::new();
            params.encode(&mut encoded);
            let again = TransportParameters::decode(side, &encoded).expect("our own words");
            let mut twice = Vec::new();
            again.encode(&mut twice);
            assert_eq!(encoded, twice);
        }
    }
});
