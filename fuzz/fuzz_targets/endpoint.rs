//! Arbitrary datagrams, partly derived from real ones, sent to a server and to a client during its
//! handshake, in virtual time. Checks that nothing panics and that virtual time advances.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::fuzz::{FuzzedDatagram, check_endpoint};

fuzz_target!(|input: (u8, Vec<FuzzedDatagram>)| {
    let (progress, datagrams) = input;
    check_endpoint(progress, datagrams);
});
