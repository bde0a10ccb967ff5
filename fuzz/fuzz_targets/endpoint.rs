//! Arbitrary datagrams, partly derived from real ones, sent to a server and to a client during its
//! handshake, in virtual time. Checks that nothing panics and that virtual time advances.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use marline_proto::testing::{Direction, Pair};

/// A multiple of the events in a second of virtual time.
const MOST_STEPS: u32 = 20_000;

fuzz_target!(|input: (u8, Vec<(bool, u8, Vec<u8>)>)| {
    let (progress, datagrams) = input;
    let mut pair = Pair::new();
    let client = pair.connect();
    pair.drive(Duration::from_millis(u64::from(progress % 64)));
    let id = pair.client.connections.get(&client).map(|connection| {
        let id = connection.original_destination();
        id.to_vec()
    });
    for (to_server, place, mut bytes) in datagrams.into_iter().take(16) {
        // Half of them have the ID of an existing connection.
        if let Some(id) = id.as_ref().filter(|_| place & 1 == 1)
            && bytes.len() > 6 + id.len()
        {
            let offset = if bytes[0] & 0x80 == 0 { 1 } else { 6 };
            bytes[offset..offset + id.len()].copy_from_slice(id);
        }
        if place & 2 == 2 {
            bytes.resize(bytes.len().max(1200), 0);
        }
        let direction = match to_server {
            true => Direction::ToServer,
            false => Direction::ToClient,
        };
        pair.deliver(direction, bytes);
        let until = pair.now + Duration::from_millis(u64::from(place >> 2));
        let mut steps = 0;
        while pair.step(until) {
            steps += 1;
            assert!(steps < MOST_STEPS, "virtual time does not advance");
        }
    }
});
