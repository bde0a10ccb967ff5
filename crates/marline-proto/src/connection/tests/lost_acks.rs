//! Acknowledgments that are lost are repeated: the sender may be unable to send what would bring others.

use super::*;

/// A client that sends a PING after two idle seconds.
fn kept_alive() -> Pair {
    Pair::with(PairConfig {
        client: TransportConfig {
            keep_alive: Some(Duration::from_secs(2)),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    })
}

/// Lets the client receive `data` of the server while its packets are lost, and from then on loses all packets to the client;
/// returns the stream.
fn lose_acks(pair: &mut Pair, ends: Ends, data: &Bytes) -> StreamId {
    let id = pair.server(ends.server).open(Dir::Uni).unwrap();
    let mut rest = data.clone();
    pair.network.conditions(Direction::ToServer).down = true;
    pair.server(ends.server).write_chunk(id, &mut rest).unwrap();
    let received = pair.drive_until(TIMEOUT, |pair| {
        let streams = pair.client(ends.client).stats().streams;
        streams.bytes_received >= data.len() as u64
    });
    assert!(received);
    // Its acknowledgments are due within 25 ms; the probe timeout of the server is longer.
    pair.drive(Duration::from_millis(26));
    pair.network.conditions(Direction::ToClient).down = true;
    pair.network.conditions(Direction::ToServer).down = false;
    pair.network.lose_in_flight(Direction::ToClient);
    assert!(pair.server(ends.server).unacknowledged(id) > 0);
    id
}

#[test]
fn a_keep_alive_repeats_an_acknowledgment_that_was_lost() {
    let mut pair = kept_alive();
    let ends = pair.establish();
    let id = lose_acks(&mut pair, ends, &pattern(5_000));
    pair.drive(Duration::from_secs(3));
    assert_eq!(pair.server(ends.server).unacknowledged(id), 0);
}

/// The client has the data of the server, and does not know that this has its Finished.
#[test]
fn the_finished_message_of_a_client_is_repeated_with_its_acknowledgments() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let accepted = pair.drive_until(TIMEOUT, |pair| {
        let server = pair.server.accepted.front().copied();
        server.is_some_and(|server| pair.server(server).is_confirmed())
    });
    assert!(accepted);
    let server = pair.server.accepted[0];
    // HANDSHAKE_DONE is lost.
    pair.network.conditions(Direction::ToClient).down = true;
    pair.flush();
    pair.network.lose_in_flight(Direction::ToClient);
    pair.network.conditions(Direction::ToClient).down = false;
    let ends = Ends { client, server };
    let id = lose_acks(&mut pair, ends, &pattern(5_000));
    assert!(!pair.client(client).is_confirmed());
    pair.drive(Duration::from_secs(1));
    assert_eq!(pair.server(server).unacknowledged(id), 0);
}

#[test]
fn an_acknowledgment_that_has_arrived_is_not_repeated() {
    let mut pair = kept_alive();
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(5_000));
    // Two of them: the first may still repeat.
    pair.drive(Duration::from_secs(5));
    let before = pair.server(ends.server).stats().frames_received;
    pair.drive(Duration::from_secs(2));
    let after = pair.server(ends.server).stats().frames_received;
    assert_eq!(after.ping, before.ping + 1);
    assert_eq!(after.ack, before.ack);
}
