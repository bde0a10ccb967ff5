use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::socket::Ecn;
use crate::{Config, Rebind, Relay, Report};

/// Sends `count` numbered datagrams from `client` through a relay to an echo; returns what came back, the addresses
/// the echo saw and the report.
fn run(
    host: &str,
    count: u8,
    pause: Duration,
    shape: impl FnOnce(&mut Config),
) -> (Vec<u8>, HashSet<SocketAddr>, Report) {
    let any: SocketAddr = format!("{host}:0").parse().unwrap();
    let echo = UdpSocket::bind(any).unwrap();
    let client = UdpSocket::bind(any).unwrap();
    let patience = Some(Duration::from_millis(300));
    echo.set_read_timeout(patience).unwrap();
    client.set_read_timeout(patience).unwrap();

    let mut config = Config::new(any, echo.local_addr().unwrap());
    shape(&mut config);
    let relay = Relay::bind(config).unwrap();
    let address = relay.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&stop);
    let relay = thread::spawn(move || relay.run(&watched).unwrap());
    let echo = thread::spawn(move || {
        let mut seen = HashSet::new();
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            seen.insert(from);
            echo.send_to(&buffer[..length], from).unwrap();
        }
        seen
    });
    let sender = client.try_clone().unwrap();
    let sending = thread::spawn(move || {
        for number in 0..count {
            sender.send_to(&[number; 100], address).unwrap();
            thread::sleep(pause);
        }
    });
    let mut arrived = Vec::new();
    let mut buffer = [0; 2048];
    while let Ok((length, from)) = client.recv_from(&mut buffer) {
        assert_eq!((length, from), (100, address));
        arrived.push(buffer[0]);
    }
    sending.join().unwrap();
    let seen = echo.join().unwrap();
    stop.store(true, Ordering::Relaxed);
    (arrived, seen, relay.join().unwrap())
}

#[test]
fn datagrams_are_forwarded_in_order() {
    for host in ["127.0.0.1", "[::1]"] {
        let (arrived, seen, report) = run(host, 100, Duration::ZERO, |_| {});
        assert_eq!(arrived, (0..100).collect::<Vec<u8>>());
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (report.to_server.datagrams, report.to_client.datagrams),
            (100, 100)
        );
        assert_eq!(report.to_server.bytes, 10_000);
        assert_eq!(report.flows.len(), 1);
    }
}

#[test]
fn listed_datagrams_are_dropped() {
    let (arrived, _, report) = run("127.0.0.1", 10, Duration::ZERO, |config| {
        config.drop_to_server = (2..=4).into();
        config.drop_to_client = (1..=1).into();
    });
    assert_eq!(arrived, [4, 5, 6, 7, 8, 9]);
    assert_eq!((report.to_server.listed, report.to_client.listed), (3, 1));
}

#[test]
fn both_directions_are_delayed() {
    let start = Instant::now();
    let (arrived, _, _) = run("127.0.0.1", 1, Duration::ZERO, |config| {
        config.delay_ms = 60;
    });
    assert_eq!(arrived, [0]);
    // The last reads time out after 300 ms, in addition to 120 ms of delay.
    assert!(start.elapsed() >= Duration::from_millis(420));
}

#[test]
fn rebinding_changes_port_and_address() {
    let rebinding = |kind| {
        run("127.0.0.1", 20, Duration::from_millis(20), |config| {
            config.rebind = Some(kind);
            config.rebind_first_s = 0.2;
            config.rebind_every_s = 60.0;
        })
    };
    let (arrived, seen, report) = rebinding(Rebind::Port);
    assert!(arrived.len() >= 19, "{arrived:?}");
    assert_eq!((seen.len(), report.rebinds), (2, 1));
    assert!(seen.iter().all(|from| from.ip().to_string() == "127.0.0.1"));

    let (_, seen, report) = rebinding(Rebind::Addr);
    assert_eq!((seen.len(), report.rebinds), (2, 1));
    assert!(seen.iter().any(|from| from.ip().to_string() == "127.0.0.2"));
}

#[test]
fn connections_are_counted_by_the_ids_of_their_clients() {
    let nowhere: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let server = UdpSocket::bind(nowhere).unwrap();
    let mut relay = Relay::bind(Config::new(nowhere, server.local_addr().unwrap())).unwrap();
    // An Initial packet with these connection IDs, and one of the handshake.
    let packet = |first: u8, to: u8, from: u8| vec![first, 0, 0, 0, 1, 1, to, 1, from, 0, 0];
    let client = "127.0.0.1:5000".parse().unwrap();
    for (first, to, from) in [(0xc0, 1, 7), (0xc0, 2, 7), (0xc0, 3, 8), (0xe0, 4, 9)] {
        relay.on_client_datagram(client, Ecn::NotEct, packet(first, to, from));
    }
    let report = relay.into_report();
    assert_eq!((report.flows.len(), report.connections), (1, 2));
}
