//! Rotation of connection IDs.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;
use crate::crypto::{QuicLb, QuicLbConfig, QuicLbFormat, ServerId};

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

/// A configuration of QUIC-LB.
fn quic_lb(config: u8, key: Option<[u8; 16]>) -> QuicLbConfig {
    let format = QuicLbFormat::new(config, 2, 9, key).unwrap();
    QuicLbConfig::new(format, ServerId::new(&[7, config]).unwrap(), false).unwrap()
}

/// The draft, section 3.1: new IDs follow the new configuration at once, and those of the old one are retired.
#[test]
fn a_new_configuration_of_quic_lb_replaces_the_ids_of_open_connections() {
    for keys in [[Some([1; 16]), Some([2; 16])], [None, None]] {
        let lb = Arc::new(QuicLb::new(quic_lb(0, keys[0]), &[3; 32]));
        let mut pair = Pair::with(PairConfig {
            quic_lb: Some(Arc::clone(&lb)),
            ..PairConfig::default()
        });
        let used: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let seen = Arc::clone(&used);
        pair.network.filter = Some(Box::new(move |direction, datagram| {
            if datagram.bytes[0] & 0x80 == 0 && matches!(direction, Direction::ToServer) {
                seen.lock().unwrap().push(datagram.bytes[1..13].to_vec());
            }
            false
        }));
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(100_000));
        // Twice, the second time before the client has retired any.
        assert_eq!(lb.replace(quic_lb(1, keys[1])), Ok(true));
        pair.server(ends.server).renew_connection_ids();
        assert_eq!(lb.replace(quic_lb(2, keys[1])), Ok(true));
        pair.server(ends.server).renew_connection_ids();
        pair.drive(Duration::from_secs(1));
        used.lock().unwrap().clear();
        download(&mut pair, ends, &pattern(100_000));
        let format = QuicLbFormat::new(2, 2, 9, keys[1]).unwrap();
        let used = used.lock().unwrap();
        assert!(used.len() > 5);
        for id in &*used {
            assert_eq!(format.server_id(id), ServerId::new(&[7, 2]), "{id:?}");
        }
        let paths = &pair.server(ends.server).paths[Slot::FIRST];
        let held: Vec<_> = paths.local_cids.iter().collect();
        assert!(held.iter().all(|id| id[0] >> 5 == 2), "{held:?}");
        // IDs that everybody can read are issued one at a time.
        assert_eq!(held.len() == 1, keys[1].is_none(), "{held:?}");
    }
}

/// The machine that answers has no state of the connection, and the same reset key.
#[test]
fn resets_of_another_server_are_those_of_the_ids_of_quic_lb() {
    let lb = Arc::new(QuicLb::new(quic_lb(0, Some([1; 16])), &[3; 32]));
    let mut pair = Pair::with(PairConfig {
        quic_lb: Some(lb),
        ..PairConfig::default()
    });
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(10_000));
    pair.restart_server();
    pair.client(ends.client).ping();
    pair.drive(Duration::from_millis(25));
    assert_eq!(client_end(&pair, ends.client), Some(ConnectionError::Reset));
}
