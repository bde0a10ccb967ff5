//! Unreliable datagrams (RFC 9221).

use super::*;
use crate::datagrams::DatagramError;

#[test]
fn datagrams_arrive_at_most_once_under_loss_and_duplication() {
    for seed in 0..5 {
        let mut pair = seeded(seed);
        let ends = pair.establish();
        pair.network.set(Conditions {
            loss: 0.1,
            duplicate: 0.1,
            jitter: Duration::from_millis(5),
            ..Conditions::default()
        });
        let mut arrived = Vec::new();
        for number in 0..500u32 {
            let data = number.to_be_bytes().repeat(1 + number as usize % 50);
            let sent = pair.client(ends.client).send_datagram(data.into());
            assert_eq!(sent, Ok(()), "seed {seed}");
            pair.drive(Duration::from_millis(2));
        }
        pair.drive(Duration::from_secs(2));
        while let Some(data) = pair.server(ends.server).recv_datagram() {
            let number = u32::from_be_bytes(data[..4].try_into().unwrap());
            assert_eq!(data.len(), 4 * (1 + number as usize % 50));
            arrived.push(number);
        }
        let count = arrived.len();
        arrived.sort_unstable();
        arrived.dedup();
        assert_eq!(arrived.len(), count, "seed {seed}: a duplicate datagram");
        assert!((420..490).contains(&count), "seed {seed}: {count} of 500");
    }
}

/// The client's first datagram after the handshake repeats its Finished message, and has less room.
#[test]
fn a_datagram_of_the_maximum_length_arrives_beside_the_end_of_the_handshake() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let has_keys = |pair: &mut Pair| pair.client(client).establishment.one_rtt().is_some();
    assert!(pair.drive_until(TIMEOUT, has_keys), "no handshake");
    pair.flush();
    let connection = pair.client(client);
    let max = connection.max_datagram_len().expect("the peer takes them");
    let sent = connection.send_datagram(vec![7; max].into());
    assert_eq!(sent, Ok(()));
    pair.drive(Duration::from_millis(20));
    let server = *pair.server.accepted.front().expect("the server accepted");
    let received = pair.server(server).recv_datagram();
    assert_eq!(received.map(|data| data.len()), Some(max));
}

#[test]
fn a_datagram_of_the_maximum_length_arrives_and_a_longer_one_is_refused() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    pair.drive(Duration::from_secs(1));
    let most = pair
        .client(ends.client)
        .max_datagram_len()
        .expect("supported");
    assert!(most > 1400, "{most}");
    let data = pattern(most + 1);
    assert_eq!(
        pair.client(ends.client).send_datagram(data.clone()),
        Err(DatagramError::TooLarge { max: most })
    );
    let fits = data.slice(1..);
    assert_eq!(pair.client(ends.client).send_datagram(fits.clone()), Ok(()));
    pair.drive(Duration::from_millis(15));
    assert_eq!(pair.server(ends.server).recv_datagram(), Some(fits));
    let emitted = pair
        .server
        .events
        .iter()
        .any(|(_, event)| matches!(event, Event::DatagramReceived));
    assert!(emitted);
}

#[test]
fn datagrams_are_refused_if_the_peer_does_not_support_them() {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            datagram_receive_buffer: None,
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let ends = pair.establish();
    assert_eq!(pair.client(ends.client).max_datagram_len(), None);
    assert_eq!(
        pair.client(ends.client)
            .send_datagram(Bytes::from_static(b"x")),
        Err(DatagramError::Unsupported)
    );
    let sent = pair
        .server(ends.server)
        .send_datagram(Bytes::from_static(b"x"));
    assert_eq!(sent, Ok(()), "the client supports datagrams");
}

#[test]
fn datagrams_arrive_during_a_stream_transfer() {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 50_000,
        ..Conditions::default()
    });
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(1_000_000));
    let (mut sent, mut received) = (0, 0);
    let done = pair.drive_until(TIMEOUT, |pair| {
        if sent < 200 && pair.server(ends.server).send_datagram(pattern(200)).is_ok() {
            sent += 1;
        }
        while pair.client(ends.client).recv_datagram().is_some() {
            received += 1;
        }
        transfer.advance(pair)
    });
    assert!(done);
    assert!(received > 150, "{received} of {sent}");
}

#[test]
fn neither_datagrams_nor_streams_wait_for_all_of_the_other() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    pair.network.set(Conditions {
        rate: Some(1_000_000),
        queue: 60_000,
        ..Conditions::default()
    });
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(20_000_000));
    let mut datagrams = 0;
    pair.drive_until(Duration::from_secs(4), |pair| {
        let server = pair.server(ends.server);
        while server.send_datagram(pattern(1000)).is_ok() {}
        while let Some(data) = pair.client(ends.client).recv_datagram() {
            datagrams += data.len();
        }
        transfer.advance(pair)
    });
    let received = [datagrams, transfer.received()];
    assert!(
        received.iter().all(|bytes| *bytes > 1_000_000),
        "{received:?}"
    );
}

/// The packets of one send have one size, which the last may fall short of (`UDP_SEGMENT` of `udp(7)`).
#[test]
fn datagrams_of_one_length_leave_in_one_batch() {
    let mut pair = Pair::new();
    let ends = pair.establish();
    pair.drive(Duration::from_secs(1));
    let now = pair.now;
    let client = pair.client(ends.client);
    for length in [1000, 1000, 1000, 900, 1000, 1100] {
        assert_eq!(client.send_datagram(pattern(length)), Ok(()));
    }
    let batches = std::iter::from_fn(|| {
        let mut bytes = Vec::new();
        let batch = client.poll_transmit(now, 16, &mut bytes)?;
        assert_eq!(batch.size, bytes.len());
        let segment = batch.segment_size.unwrap_or(batch.size);
        Some(bytes.chunks(segment).map(<[u8]>::len).collect::<Vec<_>>())
    });
    let batches: Vec<_> = batches.collect();
    let [first, second, third] = &batches[..] else {
        panic!("{batches:?}");
    };
    let overhead = third[0] - 1100;
    assert!((20..40).contains(&overhead), "{overhead}");
    let lengths = |batch: &[usize]| batch.iter().map(|size| size - overhead).collect::<Vec<_>>();
    assert_eq!(lengths(first), [1000, 1000, 1000, 900]);
    assert_eq!(lengths(second), [1000]);
    assert_eq!(lengths(third), [1100]);
}
