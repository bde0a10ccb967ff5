//! Repair of lost handshake datagrams before a probe timeout (RFC 9002, section 6.2.3). Round trips take 20 ms.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::congestion::FixedWindow;

const ROUND_TRIP: Duration = Duration::from_millis(20);

/// Settings with which only probe timeouts repair the handshake.
fn timeouts_only() -> TransportConfig {
    TransportConfig {
        first_flight_copy: None,
        handshake_retransmission: false,
        finished_copy: false,
        request_copy: false,
        ..TransportConfig::default()
    }
}

/// A pair that loses the datagrams of one direction whose numbers, from 1, are in `lost`.
fn losing(config: PairConfig, lossy: Direction, lost: &'static [u64]) -> Pair {
    let mut pair = Pair::with(config);
    let mut number = 0;
    pair.network.filter = Some(Box::new(move |direction, _| {
        number += u64::from(direction == lossy);
        direction == lossy && lost.contains(&number)
    }));
    pair
}

/// The time until the client has 1-RTT keys.
fn keys_after(pair: &mut Pair) -> Duration {
    let began = pair.now;
    let client = pair.connect();
    let done = pair.drive_until(TIMEOUT, |pair| {
        pair.client(client).establishment.one_rtt().is_some()
    });
    assert!(done, "no handshake");
    pair.now - began
}

/// Both ends with `transport`, and a certificate that takes two datagrams.
fn long_flight(transport: TransportConfig) -> PairConfig {
    PairConfig {
        client: transport.clone(),
        server: transport,
        further_names: 60,
        ..PairConfig::default()
    }
}

#[test]
fn a_lost_first_flight_leaves_again_after_50_ms_then_after_doubling_pauses() {
    let lost: [&[u64]; 4] = [&[1], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4]];
    for (lost, leaves_at) in lost.into_iter().zip([50, 150, 350, 650]) {
        let mut pair = losing(PairConfig::default(), Direction::ToServer, lost);
        let leaves_at = Duration::from_millis(leaves_at);
        assert_eq!(keys_after(&mut pair), leaves_at + ROUND_TRIP, "{lost:?}");
    }
}

#[test]
fn a_lost_first_flight_waits_for_three_initial_round_trips_without_a_copy() {
    let config = PairConfig {
        client: timeouts_only(),
        ..PairConfig::default()
    };
    let mut pair = losing(config, Direction::ToServer, &[1]);
    assert_eq!(
        keys_after(&mut pair),
        Duration::from_millis(300) + ROUND_TRIP
    );
}

#[test]
fn a_server_answers_a_repeated_hello_with_its_flight() {
    let mut pair = losing(PairConfig::default(), Direction::ToClient, &[1]);
    assert_eq!(
        keys_after(&mut pair),
        Duration::from_millis(50) + ROUND_TRIP
    );
}

#[test]
fn a_client_that_hears_the_server_without_its_hello_asks_again() {
    let mut pair = losing(
        long_flight(TransportConfig::default()),
        Direction::ToClient,
        &[1],
    );
    let took = keys_after(&mut pair);
    // A quarter of the time since the first flight passes, because the hello may only be reordered.
    assert!(
        took > ROUND_TRIP * 2 && took <= ROUND_TRIP * 5 / 2,
        "{took:?}"
    );
}

#[test]
fn a_server_repeats_the_end_of_its_flight_when_the_beginning_is_acknowledged() {
    for (transport, timely) in [(TransportConfig::default(), true), (timeouts_only(), false)] {
        let mut pair = losing(long_flight(transport), Direction::ToClient, &[2]);
        let took = keys_after(&mut pair);
        assert_eq!(took <= ROUND_TRIP * 5 / 2, timely, "{took:?}");
    }
}

/// Bytes that both ends send in a handshake and a transfer over a network without losses whose round trip is `rtt`.
fn bytes_sent(transport: TransportConfig, rtt: Duration) -> u64 {
    let mut pair = both(transport);
    pair.network.set(Conditions {
        delay: rtt / 2,
        ..Conditions::default()
    });
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(10_000));
    let counts = |direction| pair.network.counts(direction);
    [Direction::ToServer, Direction::ToClient]
        .map(counts)
        .map(|counts| counts.bytes)
        .iter()
        .sum()
}

#[test]
fn nothing_is_repeated_where_round_trips_are_short_and_nothing_is_lost() {
    let copies = TransportConfig {
        finished_copy: false,
        request_copy: false,
        ..TransportConfig::default()
    };
    for rtt in [5, 20, 49].map(Duration::from_millis) {
        assert_eq!(
            bytes_sent(copies.clone(), rtt),
            bytes_sent(timeouts_only(), rtt),
            "{rtt:?}"
        );
    }
}

#[test]
fn a_long_round_trip_costs_repeated_flights_of_each_end() {
    for (rtt, flights) in [(120, 1), (250, 2)] {
        let rtt = Duration::from_millis(rtt);
        let more = bytes_sent(TransportConfig::default(), rtt) - bytes_sent(timeouts_only(), rtt);
        let of_both = 1200..=4 * 1200;
        let range = of_both.start() * flights..=of_both.end() * flights;
        assert!(range.contains(&more), "{more} bytes for {rtt:?}");
    }
}

/// A pair, and its client that has just completed its handshake.
struct Connected {
    pair: Pair,
    client: ConnectionHandle,
}

impl Connected {
    fn with(client: TransportConfig) -> Self {
        let mut pair = Pair::with(PairConfig {
            client,
            ..PairConfig::default()
        });
        let client = pair.connect();
        let is_complete = |pair: &mut Pair| pair.client(client).establishment.one_rtt().is_some();
        assert!(pair.drive_until(TIMEOUT, is_complete), "no handshake");
        Self { pair, client }
    }

    /// Writes a request of `bytes` bytes on a new stream, to be sent with the next packets.
    fn request(&mut self, bytes: usize) {
        let client = self.pair.client(self.client);
        let id = client.open(Dir::Bi).unwrap();
        client.write(id, &pattern(bytes)).unwrap();
        client.finish(id).unwrap();
    }

    /// The time from `since` until the server has received `requests` requests.
    fn arrived_after(mut self, requests: usize, since: Instant) -> Duration {
        let mut arrived = 0;
        let done = self.pair.drive_until(TIMEOUT, |pair| {
            let server = pair.server.connections.values_mut().next();
            arrived += usize::from(server.is_some_and(|server| server.accept(Dir::Bi).is_some()));
            arrived == requests
        });
        assert!(done, "no request");
        self.pair.now - since
    }
}

#[test]
fn a_short_first_request_leaves_again_after_a_quarter_of_a_round_trip() {
    let request = |transport: TransportConfig, bytes: usize| {
        let mut connected = Connected::with(TransportConfig {
            finished_copy: false,
            ..transport
        });
        connected.request(bytes);
        let mut pair = connected.pair;
        pair.flush();
        let before = pair.network.counts(Direction::ToServer).bytes;
        pair.drive(ROUND_TRIP / 4);
        pair.network.counts(Direction::ToServer).bytes - before
    };
    let none = request(timeouts_only(), 200);
    let copied = request(TransportConfig::default(), 200) - none;
    assert!((200..400).contains(&copied), "{copied} bytes");
    let long = request(TransportConfig::default(), 2000) - request(timeouts_only(), 2000);
    assert_eq!(long, 0);
}

#[test]
fn a_finished_message_is_not_missed_if_one_datagram_of_two_arrives() {
    for (copied, expected) in [(true, true), (false, false)] {
        let transport = TransportConfig {
            finished_copy: copied,
            ..TransportConfig::default()
        };
        let config = PairConfig {
            client: transport,
            ..PairConfig::default()
        };
        let mut pair = losing(config, Direction::ToServer, &[2]);
        let client = pair.connect();
        let connected = pair.drive_until(TIMEOUT, |pair| {
            pair.client(client).establishment.one_rtt().is_some()
        });
        assert!(connected);
        pair.flush();
        let connection = pair.client(client);
        let id = connection.open(Dir::Bi).expect("the peer allows streams");
        connection.write(id, b"?").expect("the stream is open");
        pair.drive(ROUND_TRIP / 2);
        let server = *pair.server.accepted.front().expect("the server accepted");
        let arrived = pair.server(server).accept(Dir::Bi).is_some();
        assert_eq!(arrived, expected);
    }
}

/// The time until the server has received a request that is sent when the client's handshake is complete, if its first
/// datagram is lost.
fn request_after(mut transport: TransportConfig) -> Duration {
    // The acknowledgment of a PMTU probe would reveal the loss.
    transport.mtu.discover = false;
    let mut connected = Connected::with(transport);
    connected.request(5);
    let mut is_first = true;
    connected.pair.network.filter = Some(Box::new(move |direction, _| {
        direction == Direction::ToServer && std::mem::take(&mut is_first)
    }));
    let began = connected.pair.now;
    connected.arrived_after(1, began)
}

#[test]
fn a_lost_first_request_leaves_again_before_its_probe_timeout() {
    let late = ROUND_TRIP / 4;
    let copied = request_after(TransportConfig::default());
    assert_eq!(copied, late + ROUND_TRIP / 2);
    let repeated = request_after(TransportConfig {
        request_copy: false,
        ..TransportConfig::default()
    });
    let delay = crate::ack::DEFAULT_MAX_ACK_DELAY;
    assert_eq!(repeated, ROUND_TRIP + late + delay + ROUND_TRIP / 2);
    assert!(request_after(timeouts_only()) > repeated);
}

/// The cost of a handshake.
#[derive(Debug, PartialEq, Eq)]
struct Took {
    /// Bytes that the server sent until the client had its keys.
    bytes: u64,
    time: Duration,
}

/// A handshake over a link without losses, with a certificate of `names` names.
fn handshake_over(
    transport: TransportConfig,
    rtt: Duration,
    rate: Option<u64>,
    names: usize,
) -> Took {
    let mut pair = Pair::with(PairConfig {
        client: transport.clone(),
        server: transport,
        further_names: names,
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        delay: rtt / 2,
        rate,
        ..Conditions::default()
    });
    let time = keys_after(&mut pair);
    Took {
        bytes: pair.network.counts(Direction::ToClient).bytes,
        time,
    }
}

#[test]
fn large_flights_are_neither_repeated_nor_delayed_where_nothing_is_lost() {
    let repeats = TransportConfig {
        first_flight_copy: None,
        finished_copy: false,
        ..TransportConfig::default()
    };
    for (rtt, rate, names) in [(20, 2_500_000, 600), (40, 625_000, 600), (20, 125_000, 300)] {
        let over =
            |transport| handshake_over(transport, Duration::from_millis(rtt), Some(rate), names);
        assert_eq!(
            over(repeats.clone()),
            over(timeouts_only()),
            "{rate} bytes/s, {names} names"
        );
    }
}

#[test]
fn a_copy_of_the_first_flight_does_not_delay_a_large_answer() {
    let copies = TransportConfig {
        finished_copy: false,
        ..TransportConfig::default()
    };
    for (rtt, names) in [(100, 120), (150, 200), (60, 1200)] {
        let over =
            |transport| handshake_over(transport, Duration::from_millis(rtt), None, names).time;
        let (with, without) = (over(copies.clone()), over(timeouts_only()));
        assert!(
            with <= without,
            "{rtt} ms, {names} names: {with:?}, not {without:?}"
        );
    }
}

/// A client that repeats its hello endlessly, in new packets, and acknowledges nothing.
#[test]
fn a_client_that_repeats_its_hello_has_the_server_repeat_its_flight_twice_at_most() {
    let mut pair = Pair::with(PairConfig {
        client: TransportConfig {
            handshake_timeout: TIMEOUT,
            ..TransportConfig::default()
        },
        server: TransportConfig {
            initial_rtt: Duration::from_secs(20),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let client = pair.connect();
    pair.network.conditions(Direction::ToClient).down = true;
    let flights = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&flights);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        let is_flight = direction == Direction::ToClient && datagram.bytes.len() >= 600;
        seen.fetch_add(u64::from(is_flight), Ordering::Relaxed);
        false
    }));
    pair.drive(Duration::from_millis(30));
    for _ in 0..20 {
        pair.client(client)
            .retransmit_flight(Slot::FIRST, SpaceId::Initial);
        pair.drive(Duration::from_millis(5));
    }
    let flights = flights.load(Ordering::Relaxed);
    let limit = 1 + u64::from(crate::limits::MAX_RETRANSMISSIONS);
    assert!(flights > 1 && flights <= limit, "{flights} flights");
}

/// Undecryptable packets prove nothing: anyone who knows the client's addresses can send them.
#[test]
fn undecryptable_packets_cost_one_repeated_flight_and_no_other_repeat() {
    let mut pair = Pair::new();
    let flights = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&flights);
    pair.network.filter = Some(Box::new(move |direction, _| {
        seen.fetch_add(
            u64::from(direction == Direction::ToServer),
            Ordering::Relaxed,
        );
        direction == Direction::ToServer
    }));
    let client = pair.connect();
    let garbage = {
        let cid = pair.client(client).handshake_cid();
        let mut bytes = vec![0xe0, 0, 0, 0, 1, u8::try_from(cid.len()).unwrap()];
        bytes.extend_from_slice(&cid);
        bytes.extend_from_slice(&[0, 0x40, 100]);
        bytes.resize(bytes.len() + 100, 7);
        bytes
    };
    for _ in 0..8 {
        pair.drive(Duration::from_millis(5));
        pair.deliver(Direction::ToClient, garbage.clone());
    }
    assert_eq!(flights.load(Ordering::Relaxed), 2);
    pair.drive(Duration::from_millis(9));
    assert_eq!(flights.load(Ordering::Relaxed), 2);
    pair.drive(Duration::from_millis(1));
    assert_eq!(flights.load(Ordering::Relaxed), 3, "the copy is not due");
}

#[test]
fn a_first_flight_of_another_version_has_a_round_trip_to_be_answered() {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        delay: Duration::from_millis(20),
        ..Conditions::default()
    });
    pair.client_config.version = 0x0a0a_0a0a;
    assert_eq!(keys_after(&mut pair), Duration::from_millis(80));
    let flights = 2;
    let finished = 1;
    assert_eq!(
        pair.network.counts(Direction::ToServer).sent,
        flights + finished
    );
}

/// A server that has just sent data with its flight, as many bytes as the pacer permits in a burst.
#[test]
fn a_repeated_flight_that_the_pacer_holds_back_does_not_wait_for_its_probe_timeout() {
    let mut pair = Pair::with(PairConfig {
        client: TransportConfig {
            remember_rtt: false,
            ..TransportConfig::default()
        },
        server: TransportConfig {
            initial_window: Arc::new(FixedWindow { packets: 32 }),
            ..TransportConfig::default()
        },
        zero_rtt: true,
        ..PairConfig::default()
    });
    resumption::visit(&mut pair);
    pair.server.accepted.clear();
    pair.network.conditions(Direction::ToClient).down = true;
    let client = pair.connect();
    let connection = pair.client(client);
    let id = connection.open(Dir::Bi).expect("limits are remembered");
    connection.write(id, b"?").expect("the stream is open");
    connection.finish(id).expect("the stream is open");
    // The copy of the first flight arrives after 60 ms.
    pair.drive(Duration::from_micros(59_900));
    let server = pair.server.accepted.pop_front().expect("0-RTT arrived");
    let connection = pair.server(server);
    assert!(connection.accept(Dir::Bi).is_some());
    connection
        .write(id, &pattern(11_000))
        .expect("there is room");
    pair.flush();
    pair.network.conditions(Direction::ToClient).down = false;
    pair.drive(ROUND_TRIP);
    assert!(pair.client(client).establishment.one_rtt().is_some());
}

/// The time until the server has received a request in two packets, as of HTTP/3 with its settings, if all of them and
/// all their copies are lost.
fn request_after_two_losses(request_copy: bool) -> Duration {
    let mut transport = TransportConfig {
        request_copy,
        finished_copy: false,
        ..TransportConfig::default()
    };
    transport.mtu.discover = false;
    let mut connected = Connected::with(transport);
    connected.pair.flush();
    let began = connected.pair.now;
    let is_down = Arc::new(AtomicBool::new(true));
    let loses = Arc::clone(&is_down);
    connected.pair.network.filter = Some(Box::new(move |direction, _| {
        direction == Direction::ToServer && loses.load(Ordering::Relaxed)
    }));
    for bytes in [60, 200] {
        connected.request(bytes);
        connected.pair.flush();
    }
    connected.pair.drive(ROUND_TRIP / 2);
    is_down.store(false, Ordering::Relaxed);
    connected.arrived_after(2, began)
}

#[test]
fn a_request_that_is_lost_with_its_copy_is_not_repeated_later_than_without() {
    let [copied, single] = [true, false].map(request_after_two_losses);
    assert!(copied <= single, "{copied:?}, {single:?} without a copy");
}
