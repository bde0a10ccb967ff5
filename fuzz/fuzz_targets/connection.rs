//! Arbitrary frames under the real keys of one end of a connection: in 1-RTT, 0-RTT, Handshake and Initial packets, in
//! virtual time. Checks for panics, progress and the limits of the other end, and that a client connects again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::check_connection;

fuzz_target!(|input: &[u8]| {
    check_connection(input);
});
