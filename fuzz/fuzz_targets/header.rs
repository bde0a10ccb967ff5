//! Arbitrary datagrams. Checks that fields lie within the packet, and that routing agrees with parsing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_wire::packet::{self, Packet};

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (id_len, clear_fixed_bit, bytes) = input;
    let id_len = usize::from(id_len % 21);
    let destination = packet::destination(bytes, id_len);
    match packet::parse(bytes, id_len, clear_fixed_bit) {
        Ok(Packet::Protected(header)) => {
            assert!(header.number_offset <= header.len && header.len <= bytes.len());
            assert!(header.token(bytes).len() <= bytes.len());
            assert_eq!(destination, Some(&*header.dcid));
        }
        Ok(Packet::VersionNegotiation(offer)) => {
            assert!(offer.versions().count() <= bytes.len() / 4);
        }
        Ok(_) | Err(_) => {}
    }
});
