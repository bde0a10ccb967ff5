//! Key updates during transfers.

use super::*;

/// The number of key updates, which must be the same at both ends.
fn common_generation(pair: &mut Pair, ends: Ends) -> u64 {
    let of = |connection: &mut Connection| {
        let keys = connection.establishment.one_rtt();
        keys.expect("the handshake is complete").generation()
    };
    let client = of(pair.client(ends.client));
    let server = of(pair.server(ends.server));
    assert_eq!(client, server, "the ends have different keys");
    client
}

/// Transfers three megabytes in each direction while client and server update keys as often as permitted, each
/// if set in `updaters`; returns the number of updates that each initiated.
fn transfer(pair: &mut Pair, updaters: [bool; 2]) -> [u64; 2] {
    let ends = pair.establish();
    let mut transfers = [
        Transfer::down(pair, ends, &pattern(3_000_000)),
        Transfer::up(pair, ends, &pattern(3_000_000)),
    ];
    let mut initiated = [0; 2];
    let mut complete = [false; 2];
    let done = pair.drive_until(TIMEOUT, |pair| {
        let now = pair.now;
        if updaters[0] && pair.client(ends.client).initiate_key_update(now) {
            initiated[0] += 1;
        }
        if updaters[1] && pair.server(ends.server).initiate_key_update(now) {
            initiated[1] += 1;
        }
        for (transfer, complete) in transfers.iter_mut().zip(&mut complete) {
            *complete = *complete || transfer.advance(pair);
        }
        complete == [true; 2]
    });
    assert!(done, "a key update stalled a transfer");
    pair.drive(Duration::from_secs(2));
    let generation = common_generation(pair, ends);
    assert!(generation >= initiated[0].max(initiated[1]));
    initiated
}

/// A pair over a network with losses, duplicates and reordering.
fn bad(seed: u64) -> Pair {
    let mut pair = seeded(seed);
    pair.network.set(Conditions {
        loss: 0.03,
        duplicate: 0.01,
        jitter: Duration::from_millis(10),
        rate: Some(1_250_000),
        ..Conditions::default()
    });
    pair
}

#[test]
fn either_end_updates_keys_under_loss_and_reordering() {
    for seed in 0..3 {
        let [client, _] = transfer(&mut bad(seed), [true, false]);
        assert!(client > 3, "seed {seed}: the client updated {client} times");
        let [_, server] = transfer(&mut bad(seed), [false, true]);
        assert!(server > 3, "seed {seed}: the server updated {server} times");
    }
}

#[test]
fn both_ends_may_update_keys_at_once() {
    for seed in 0..3 {
        let [client, server] = transfer(&mut bad(seed), [true, true]);
        assert!(client + server > 3, "seed {seed}: {client} and {server}");
    }
    let mut pair = Pair::new();
    let ends = pair.establish();
    pair.drive(Duration::from_millis(100));
    let now = pair.now;
    assert!(pair.client(ends.client).initiate_key_update(now));
    assert!(pair.server(ends.server).initiate_key_update(now));
    pair.drive(Duration::from_secs(1));
    // Both are the same update.
    assert_eq!(common_generation(&mut pair, ends), 1);
    assert_eq!(pair.client(ends.client).stats().packets_dropped, 0);
}

#[test]
fn keys_are_updated_at_the_configured_interval() {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            key_update_interval: Some(100),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let ends = pair.establish();
    let data = pattern(4_000_000);
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 30_000,
        ..Conditions::default()
    });
    download(&mut pair, ends, &data);
    let updates = common_generation(&mut pair, ends);
    // 2800 packets; an update also waits until packets under the old key have stopped arriving.
    assert!((5..=28).contains(&updates), "{updates} updates");
}

#[test]
fn a_key_update_waits_for_confirmation_and_for_the_previous_update() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let now = pair.now;
    assert!(!pair.client(client).initiate_key_update(now));
    pair.drive(Duration::from_millis(100));
    let now = pair.now;
    assert!(pair.client(client).initiate_key_update(now));
    assert!(!pair.client(client).initiate_key_update(now));
    pair.drive(Duration::from_millis(25));
    let now = pair.now;
    assert!(
        !pair.client(client).initiate_key_update(now),
        "packets under the old key may still arrive"
    );
    pair.drive(Duration::from_secs(2));
    let now = pair.now;
    assert!(pair.client(client).initiate_key_update(now));
}
