//! Rotation of connection IDs.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;

#[test]
fn both_ends_rotate_their_connection_ids_during_a_transfer() {
    for seed in 0..3 {
        let mut pair = seeded(seed);
        pair.network.set(Conditions {
            loss: 0.03,
            jitter: Duration::from_millis(8),
            rate: Some(1_250_000),
            ..Conditions::default()
        });
        let ids: Arc<Mutex<[BTreeSet<Vec<u8>>; 2]>> = Arc::default();
        let seen = Arc::clone(&ids);
        pair.network.filter = Some(Box::new(move |direction, datagram| {
            if datagram.bytes[0] & 0x80 == 0 {
                let id = datagram.bytes[1..9].to_vec();
                seen.lock().unwrap()[direction as usize].insert(id);
            }
            false
        }));
        let ends = pair.establish();
        let mut transfer = Transfer::down(&mut pair, ends, &pattern(1_500_000));
        let (mut client, mut server) = (0, 0);
        let done = pair.drive_until(TIMEOUT, |pair| {
            client += u64::from(pair.client(ends.client).rotate_connection_ids());
            server += u64::from(pair.server(ends.server).rotate_connection_ids());
            transfer.advance(pair)
        });
        assert!(done, "stalled after {} bytes", transfer.received());
        assert!(client > 5 && server > 5, "{client} and {server} rotations");
        let ids = ids.lock().unwrap();
        assert!(ids.iter().all(|ids| ids.len() > 4), "too few IDs were used");
    }
}

#[test]
fn rotation_never_holds_more_than_five_local_connection_ids() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    for _ in 0..50 {
        pair.server(ends.server).rotate_connection_ids();
        pair.client(ends.client).ping();
        pair.drive(Duration::from_millis(100));
        let held = pair.server(ends.server).paths[Slot::FIRST]
            .local_cids
            .iter()
            .count();
        assert!(held <= 5, "{held} local IDs");
    }
    download(&mut pair, ends, &pattern(10_000));
}
