//! Content of requests for tunnels, cut anywhere. Checks that it is read in bounded memory whatever the cuts are, and that what the
//! capsules say stays the same when it is encoded again.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use marline_h3::capsule::Capsule;
use marline_tunnel::address::{self, ADDRESS_ASSIGN, ADDRESS_REQUEST};
use marline_tunnel::capsule_parser;
use marline_tunnel::route::{self, ROUTE_ADVERTISEMENT};

fuzz_target!(|input: &[u8]| {
    let Some((&size, content)) = input.split_first() else {
        return;
    };
    let whole = read(content, content.len().max(1));
    assert_eq!(read(content, usize::from(size) + 1), whole);
    for capsule in &whole {
        check(capsule);
    }
});

/// The capsules of content that comes in pieces of `size` bytes, until one is malformed.
fn read(content: &[u8], size: usize) -> Vec<Capsule> {
    let mut parser = capsule_parser();
    let mut capsules = Vec::new();
    for piece in content.chunks(size) {
        parser.push(Bytes::copy_from_slice(piece));
        loop {
            match parser.next_capsule() {
                Ok(Some(capsule)) => capsules.push(capsule),
                Ok(None) => break,
                Err(_) => return capsules,
            }
        }
    }
    capsules
}

fn check(capsule: &Capsule) {
    match capsule.kind {
        ADDRESS_ASSIGN => {
            if let Ok(addresses) = address::decode_assign(&capsule.value) {
                let again = address::assign(&addresses);
                assert_eq!(address::decode_assign(&again.value), Ok(addresses));
            }
        }
        ADDRESS_REQUEST => {
            if let Ok(addresses) = address::decode_request(&capsule.value) {
                let again = address::request(&addresses);
                assert_eq!(address::decode_request(&again.value), Ok(addresses));
            }
        }
        ROUTE_ADVERTISEMENT => {
            if let Ok(ranges) = route::decode(&capsule.value) {
                let again = route::advertisement(&ranges);
                assert_eq!(route::decode(&again.value), Ok(ranges));
            }
        }
        _ => {}
    }
}
