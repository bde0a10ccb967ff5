//! The FIN of a stream is sent with its last data, or in the next packet, regardless of data of other streams.

use super::*;
use crate::config::MultipathConfig;
use crate::priority::Priority;
use crate::scheduling::path::SCHEDULERS as PATH_SCHEDULERS;
use crate::scheduling::stream::SCHEDULERS;

/// 10 Mbit/s with a round-trip time of 20 ms.
const LINK: Conditions = Conditions {
    rate: Some(1_250_000),
    queue: 300_000,
    ..Conditions::GOOD
};

/// The arrival time of the last byte of a stream, and of its FIN.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    last_byte: Instant,
    end: Instant,
}

/// A download of streams that are written together, and finished only after packets have been sent.
struct Downloads {
    pair: Pair,
    ends: Ends,
    ids: Vec<StreamId>,
}

impl Downloads {
    /// Writes streams of these sizes, and makes the server send once before it finishes them.
    fn written(mut pair: Pair, ends: Ends, sizes: &[usize]) -> Self {
        let mut ids = Vec::new();
        for &size in sizes {
            let server = pair.server(ends.server);
            let id = server.open(Dir::Uni).expect("the peer allows streams");
            server.set_priority(id, Priority::weighted(None, 110));
            let mut data = pattern(size);
            while !data.is_empty() {
                server.write_chunk(id, &mut data).expect("room");
            }
            ids.push(id);
        }
        pair.flush();
        Self { pair, ends, ids }
    }

    fn finish(&mut self, index: usize) {
        let server = self.pair.server(self.ends.server);
        server.finish(self.ids[index]).expect("the stream is open");
    }

    /// Waits until all streams have arrived.
    fn arrivals(mut self) -> Vec<Arrival> {
        let start = self.pair.now;
        let unknown = Arrival {
            last_byte: start,
            end: start,
        };
        let mut arrivals = vec![unknown; self.ids.len()];
        let mut open = self.ids.len();
        let (ids, ends) = (&self.ids, self.ends);
        let done = self.pair.drive_until(TIMEOUT, |pair| {
            let now = pair.now;
            for (id, arrival) in ids.iter().zip(&mut arrivals) {
                loop {
                    match pair.client(ends.client).read(|| now, *id, usize::MAX) {
                        Ok(Some(_)) => arrival.last_byte = now,
                        Ok(None) => {
                            arrival.end = now;
                            open -= 1;
                            break;
                        }
                        Err(_) => break,
                    }
                }
            }
            open == 0
        });
        assert!(done, "{open} streams have no end: {arrivals:?}");
        arrivals
    }
}

/// A connection with weighted turns over two links, the second with a round-trip time of 160 ms.
fn two_paths(scheduler: &str, stream_scheduler: &str) -> (Pair, Ends) {
    let transport = TransportConfig {
        stream_scheduler: SCHEDULERS.make(stream_scheduler).expect("it exists"),
        multipath: Some(MultipathConfig {
            scheduler: PATH_SCHEDULERS.make(scheduler).expect("it exists"),
            reinjection: None,
            ..MultipathConfig::default()
        }),
        ..TransportConfig::default()
    };
    let mut pair = both(transport);
    let ends = pair.establish();
    pair.drive(Duration::from_millis(100));
    let local = SocketAddr::from(([198, 51, 100, 1], 40_001));
    pair.network.set(LINK);
    pair.network.set_link(
        local,
        Conditions {
            delay: Duration::from_millis(80),
            ..LINK
        },
    );
    let tuple = FourTuple {
        local,
        remote: pair.server.address,
    };
    let now = pair.now;
    let opened = pair.client(ends.client).open_path(now, tuple);
    assert!(opened.is_ok(), "{opened:?}");
    pair.drive(Duration::from_secs(1));
    (pair, ends)
}

#[test]
fn the_end_of_a_stream_arrives_with_its_last_byte_on_several_paths() {
    for scheduler in ["hbes", "sa_ecf", "lrf", "water_filling"] {
        for stream_scheduler in ["wrr", "scattered_wrr", "rfc9218"] {
            let (pair, ends) = two_paths(scheduler, stream_scheduler);
            let mut downloads = Downloads::written(pair, ends, &[20_000; 5]);
            for index in 0..5 {
                downloads.finish(index);
            }
            let arrivals = downloads.arrivals();
            // Streams whose data was sent before they were finished get the FIN in a later packet.
            let late = Duration::from_millis(1);
            let waited = arrivals
                .iter()
                .filter(|arrival| arrival.end - arrival.last_byte > late)
                .count();
            assert_eq!(waited, 0, "{scheduler}, {stream_scheduler}: {arrivals:?}");
        }
    }
}

#[test]
fn an_end_without_data_waits_for_no_turn_of_other_streams() {
    for stream_scheduler in ["wrr", "scattered_wrr", "rfc9218", "fifo"] {
        let mut pair = both(TransportConfig {
            stream_scheduler: SCHEDULERS.make(stream_scheduler).expect("it exists"),
            ..TransportConfig::default()
        });
        let ends = pair.establish();
        pair.drive(Duration::from_millis(100));
        pair.network.set(LINK);
        // The small stream is sent whole; it is finished while the large ones send.
        let mut downloads = Downloads::written(pair, ends, &[500, 300_000, 300_000]);
        downloads.pair.drive(Duration::from_millis(50));
        let finished = downloads.pair.now;
        for index in 0..3 {
            downloads.finish(index);
        }
        let small = downloads.arrivals()[0];
        let took = small.end - finished;
        // One window is ahead of it.
        assert!(
            took < Duration::from_millis(60),
            "{stream_scheduler}: the end came after {took:?}"
        );
    }
}

#[test]
fn a_stream_that_ends_later_lets_those_that_depend_on_it_send() {
    let mut pair = both(TransportConfig {
        stream_scheduler: SCHEDULERS
            .make("wrr(strict_parent=true)")
            .expect("it exists"),
        ..TransportConfig::default()
    });
    let ends = pair.establish();
    pair.drive(Duration::from_millis(100));
    let server = pair.server(ends.server);
    let parent = server.open(Dir::Uni).expect("the peer allows streams");
    let child = server.open(Dir::Uni).expect("the peer allows streams");
    server.set_priority(child, Priority::weighted(Some(parent), 16));
    server.write(parent, b"first").expect("room");
    pair.drive(Duration::from_millis(100));
    let server = pair.server(ends.server);
    server.write(child, b"second").expect("room");
    pair.drive(Duration::from_millis(100));
    let now = pair.now;
    let read = pair.client(ends.client).read(|| now, child, 100);
    assert!(read.is_err(), "its parent has not ended: {read:?}");
    pair.server(ends.server).finish(parent).expect("it is open");
    pair.drive(Duration::from_millis(100));
    let now = pair.now;
    let read = pair.client(ends.client).read(|| now, child, 100);
    assert_eq!(read, Ok(Some(Bytes::from_static(b"second"))));
}
