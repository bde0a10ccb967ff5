//! Clients that send only the smallest acknowledgments, from new addresses: the server may send three times their size
//! there before it is answered (RFC 9000, sections 8.2 and 9.3).

use std::net::SocketAddr;
use std::sync::Mutex;

use proptest::prelude::*;

use super::super::craft::Crafting;
use super::*;
use crate::ack::EveryN;
use crate::level::SpaceId;
use crate::limits::{AMPLIFICATION_FACTOR, MIN_DATAGRAM_SIZE};

/// Lengths of the connection IDs of clients.
const ID_LENS: [usize; 4] = [0, 4, 8, 20];

fn binding(n: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 50_001 + n))
}

/// A client that acknowledges each packet immediately and sends no flow control frames and no PINGs.
fn ack_only(seed: u64, id_len: usize, rtt: Duration) -> Pair {
    let mut pair = Pair::with(PairConfig {
        client: TransportConfig {
            ack_policy: Arc::new(|| {
                Box::new(EveryN {
                    packets: 1,
                    ..EveryN::default()
                })
            }),
            response_ping: None,
            stream_receive_window: Some(64 << 20),
            receive_window: Some(64 << 20),
            max_stream_receive_window: 64 << 20,
            max_receive_window: 64 << 20,
            ..TransportConfig::default()
        },
        client_id_len: id_len,
        // Its packets have the minimum size.
        server_id_len: 4,
        seed,
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        rate: Some(250_000),
        queue: 30_000,
        delay: rtt / 2,
        ..Conditions::default()
    });
    pair
}

/// Datagrams between a server and the last address of its client.
#[derive(Debug, Default)]
struct Seen {
    to_server: Vec<usize>,
    to_client: Vec<usize>,
}

/// Records the sizes of datagrams from and to `address`; the first `lost` to it do not arrive.
fn watch(pair: &mut Pair, address: SocketAddr, mut lost: usize) -> Arc<Mutex<Seen>> {
    let seen = Arc::<Mutex<Seen>>::default();
    let recorded = Arc::clone(&seen);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        let mut seen = recorded.lock().unwrap();
        let len = datagram.bytes.len();
        match direction {
            Direction::ToServer if datagram.source == address => seen.to_server.push(len),
            Direction::ToClient => {
                seen.to_client.push(len);
                if lost > 0 {
                    lost -= 1;
                    return true;
                }
            }
            Direction::ToServer => {}
        }
        false
    }));
    seen
}

/// Moves the client to another socket: one acknowledgment is sent from there, and packets in flight to the previous
/// one are lost. Returns the size of that datagram.
fn rebind(pair: &mut Pair, transfer: &mut Transfer, ends: Ends, n: u16, lost: usize) -> usize {
    pair.network.nat = Some(binding(n));
    let seen = watch(pair, binding(n), lost);
    let sent = pair.drive_until(Duration::from_secs(2), |pair| {
        transfer.advance(pair);
        !seen.lock().unwrap().to_server.is_empty()
    });
    assert!(sent, "the client sends nothing after rebinding {n}");
    pair.network.lose_in_flight(Direction::ToClient);
    let moved = pair.drive_until(Duration::from_secs(2), |pair| {
        transfer.advance(pair);
        pair.server(ends.server).remote_address() == binding(n)
    });
    assert!(moved, "rebinding {n}");
    let seen = seen.lock().unwrap();
    // Two packets may arrive at the same time.
    assert!(seen.to_server.len() <= 2, "{seen:?}");
    seen.to_server[0]
}

fn is_validated(pair: &mut Pair, ends: Ends) -> bool {
    let active = &pair.server(ends.server).paths[Slot::FIRST].tuples.active;
    active.validation.is_none() && active.amplification.is_validated()
}

#[test]
fn a_download_survives_rebindings_every_half_second() {
    for id_len in ID_LENS {
        for rtt in [4, 21, 100, 300] {
            let what = format!("{id_len} bytes, {rtt} ms");
            let mut pair = ack_only(1, id_len, Duration::from_millis(rtt));
            let ends = pair.establish();
            let mut transfer = Transfer::down(&mut pair, ends, &pattern(2_000_000));
            pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
            let mut smallest = usize::MAX;
            for n in 0..12 {
                let next = pair.now + Duration::from_millis(500);
                let size = rebind(&mut pair, &mut transfer, ends, n, 0);
                smallest = smallest.min(size);
                pair.drive_until(next - pair.now, |pair| transfer.advance(pair));
                if 3 * rtt < 500 {
                    assert!(is_validated(&mut pair, ends), "{what}: {n}");
                }
            }
            assert!(smallest < 38, "{what}: {smallest} bytes");
            pair.network.filter = None;
            let after = transfer.complete(&mut pair);
            assert!(
                after < Duration::from_millis(8_000 + 50 * rtt),
                "{what}: {after:?}"
            );
        }
    }
}

/// Whether a download completes after rebindings every half second that lose no packets in flight.
fn survives_losses(seed: u64, loss: f64, rtt: Duration) -> bool {
    let mut pair = ack_only(seed, 8, rtt);
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(3_000_000));
    for direction in [Direction::ToServer, Direction::ToClient] {
        pair.network.conditions(direction).loss = loss;
    }
    for n in 0..20 {
        if pair.drive_until(Duration::from_millis(500), |pair| {
            client_end(pair, ends.client).is_some() || transfer.advance(pair)
        }) {
            break;
        }
        pair.network.nat = Some(binding(n));
    }
    pair.drive_until(Duration::from_secs(100), |pair| {
        client_end(pair, ends.client).is_some() || transfer.advance(pair)
    });
    transfer.received() == 3_000_000
}

#[test]
fn a_download_survives_rebindings_with_losses() {
    for loss in [0.01, 0.03] {
        for rtt in [21, 100] {
            for seed in 0..6 {
                let survives = survives_losses(seed, loss, Duration::from_millis(rtt));
                assert!(survives, "seed {seed}, {loss}, {rtt} ms");
            }
        }
    }
}

#[test]
fn a_lost_challenge_costs_a_few_round_trips() {
    for id_len in [0, 4, 8] {
        for rtt in [4, 21, 100] {
            let mut pair = ack_only(1, id_len, Duration::from_millis(rtt));
            let ends = pair.establish();
            let mut transfer = Transfer::down(&mut pair, ends, &pattern(2_000_000));
            pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
            rebind(&mut pair, &mut transfer, ends, 0, 1);
            let pto = pair.server(ends.server).paths[Slot::FIRST]
                .recovery
                .pto(Duration::ZERO)
                .max(Duration::from_millis(25));
            let moved_at = pair.now;
            let validated = pair.drive_until(Duration::from_secs(5), |pair| {
                transfer.advance(pair);
                is_validated(pair, ends)
            });
            let took = pair.now - moved_at;
            // The last challenge that the limit allows, then one of full size.
            let most = 2 * pto + 2 * Duration::from_millis(rtt + 10);
            assert!(
                validated && took < most,
                "{id_len}, {rtt} ms: {took:?}, at most {most:?}"
            );
        }
    }
}

#[test]
fn a_lost_challenge_is_repeated_after_the_probe_timeout_once_the_client_sends_more() {
    let rtt = Duration::from_millis(21);
    let mut pair = ack_only(1, 20, rtt);
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(1_000_000));
    pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
    rebind(&mut pair, &mut transfer, ends, 0, 1);
    let path = |pair: &mut Pair| {
        let path = &pair.server(ends.server).paths[Slot::FIRST];
        path.next_validation_timeout().expect("a challenge left")
    };
    let first = path(&mut pair);
    let now = pair.now;
    // The client sends another packet.
    for _ in 0..2 {
        let datagram = pair.client(ends.client).craft_frames(now, 0, &[1]).unwrap();
        pair.deliver_from(binding(0), datagram);
    }
    let second = path(&mut pair);
    assert!(
        (second - now) * 2 <= first - now,
        "{:?}, then {:?}",
        first - now,
        second - now
    );
}

#[test]
fn a_server_closes_at_an_address_that_has_sent_one_acknowledgment() {
    for id_len in ID_LENS {
        let mut pair = ack_only(1, id_len, Duration::from_millis(20));
        let ends = pair.establish();
        let mut transfer = Transfer::down(&mut pair, ends, &pattern(1_000_000));
        pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
        let size = rebind(&mut pair, &mut transfer, ends, 0, usize::MAX);
        assert!(size < 38, "{size} bytes");
        pair.network.filter = None;
        let now = pair.now;
        pair.server(ends.server)
            .close(now, 7, b"a reason for which there is no room");
        pair.drive(Duration::from_millis(100));
        let end = client_end(&pair, ends.client);
        assert!(
            matches!(end, Some(ConnectionError::PeerApplication { code: 7, .. })),
            "{id_len}: {end:?}"
        );
    }
}

/// Delivers datagrams of these sizes from an address unknown to the server: the first is answered by a challenge
/// immediately, expanded to 1200 bytes if the limit permits, and the limit is respected.
fn challenges_within_limit(id_len: usize, sizes: &[u16]) {
    let mut pair = ack_only(1, id_len, Duration::from_millis(20));
    let ends = pair.establish();
    pair.drive(Duration::from_secs(2));
    let seen = watch(&mut pair, binding(0), usize::MAX);
    pair.network.nat = Some(binding(0));
    let mut received = 0;
    for (n, &size) in sizes.iter().enumerate() {
        let now = pair.now;
        let client = pair.client(ends.client);
        let crafting = Crafting {
            flip: 0,
            pad_to: size,
        };
        let datagram = client
            .craft_packet(now, Slot::FIRST, SpaceId::Data, &[1], crafting)
            .unwrap();
        received += datagram.len();
        pair.deliver_from(binding(0), datagram);
        pair.flush();
        {
            let seen = seen.lock().unwrap();
            let sent: usize = seen.to_client.iter().sum();
            let limit = received * AMPLIFICATION_FACTOR as usize;
            assert!(sent <= limit, "{sent} bytes for {received}");
            if n == 0 {
                let full = usize::from(MIN_DATAGRAM_SIZE);
                let first = seen.to_client.first();
                assert!(
                    first.is_some_and(|&len| if limit < full { len < 60 } else { len == full }),
                    "{first:?} for {received}"
                );
            }
        }
        pair.drive(Duration::from_millis(40));
    }
}

#[test]
fn a_datagram_of_any_size_from_a_new_address_is_answered_by_a_challenge() {
    let ids = prop::sample::select(ID_LENS.to_vec());
    let sizes = prop::collection::vec(prop_oneof![0..60u16, 0..1300u16], 1..6);
    for_random(48, &(ids, sizes), |(id_len, sizes)| {
        challenges_within_limit(id_len, &sizes);
    });
}
