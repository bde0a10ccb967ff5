//! Many small streams, more than the server allows at once.

use std::collections::BTreeMap;

use super::*;
use crate::sending::Content;

/// Answers each request with its bytes, repeated once.
fn serve(pair: &mut Pair, server: ConnectionHandle, requests: &mut BTreeMap<StreamId, Vec<u8>>) {
    let now = pair.now;
    let connection = pair.server(server);
    while let Some(id) = connection.accept(Dir::Bi) {
        requests.insert(id, Vec::new());
    }
    requests.retain(|&id, request| {
        loop {
            match connection.read(|| now, id, usize::MAX) {
                Ok(Some(bytes)) => request.extend_from_slice(&bytes),
                Ok(None) => break,
                Err(ReadError::Blocked) => return true,
                Err(error) => panic!("{error}"),
            }
        }
        let answer = request.repeat(2);
        assert_eq!(connection.write(id, &answer), Ok(answer.len()));
        assert_eq!(connection.finish(id), Ok(()));
        false
    });
}

/// Sends `count` requests, as many concurrently as the server allows; returns the time they took.
fn request(pair: &mut Pair, count: usize) -> Duration {
    let ends = pair.establish();
    let began = pair.now;
    let (mut requested, mut answered) = (0, 0);
    let mut waiting: BTreeMap<StreamId, (usize, Vec<u8>)> = BTreeMap::new();
    let mut requests = BTreeMap::new();
    let done = pair.drive_until(TIMEOUT, |pair| {
        let now = pair.now;
        let connection = pair.client(ends.client);
        while requested < count
            && let Some(id) = connection.open(Dir::Bi)
        {
            let request = format!("file number {requested}");
            assert_eq!(connection.write(id, request.as_bytes()), Ok(request.len()));
            assert_eq!(connection.finish(id), Ok(()));
            waiting.insert(id, (requested, Vec::new()));
            requested += 1;
        }
        assert!(waiting.len() <= 256, "more streams than the server allows");
        waiting.retain(|&id, (number, answer)| {
            loop {
                match connection.read(|| now, id, usize::MAX) {
                    Ok(Some(bytes)) => answer.extend_from_slice(&bytes),
                    Ok(None) => break,
                    Err(ReadError::Blocked) => return true,
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(
                *answer,
                format!("file number {number}").repeat(2).as_bytes()
            );
            answered += 1;
            false
        });
        serve(pair, ends.server, &mut requests);
        answered == count
    });
    assert!(done, "{answered} of {count} answered");
    let took = pair.now - began;
    pair.drive(Duration::from_secs(1));
    assert_eq!(pair.client(ends.client).streams.stats().open, 0);
    assert_eq!(pair.server(ends.server).streams.stats().open, 0);
    took
}

#[test]
fn two_thousand_small_requests_take_less_than_600_ms() {
    let took = request(&mut Pair::new(), 2000);
    // Eight times 256 streams, each a round trip and the time until credit for streams arrives.
    assert!(took < Duration::from_millis(600), "took {took:?}");
}

#[test]
fn all_streams_complete_under_loss() {
    for seed in 0..3 {
        let mut pair = seeded(seed);
        pair.network.set(Conditions {
            loss: 0.05,
            jitter: Duration::from_millis(5),
            ..Conditions::default()
        });
        request(&mut pair, 500);
    }
}

/// Data may be planned for a packet, and its stream reset before the packet is built.
#[test]
fn data_that_is_void_meanwhile_does_not_end_a_packet() {
    let mut pair = both(TransportConfig::default());
    let ends = pair.establish();
    pair.drive(TIMEOUT / 100);
    let server = pair.server(ends.server);
    let [planned, other] = [(), ()].map(|()| {
        let id = server.open(Dir::Uni).expect("the peer allows streams");
        server.write(id, &[1; 100]).expect("room");
        id
    });
    server.sending.refresh(&mut server.streams);
    let mut content = Content {
        streams: &mut server.streams,
        paths: &mut server.paths,
    };
    let segment = server.sending.queue(planned, 200, &mut content);
    assert_eq!(segment.map(|segment| segment.len), Some(100));
    server.reset(planned, 7).expect("the stream is open");
    let before = pair.network.counts(Direction::ToClient).sent;
    pair.flush();
    assert_eq!(pair.network.counts(Direction::ToClient).sent, before + 1);
    pair.drive(TIMEOUT / 100);
    let now = pair.now;
    let read = pair.client(ends.client).read(|| now, other, usize::MAX);
    assert_eq!(read.map(|data| data.map(|data| data.len())), Ok(Some(100)));
}
