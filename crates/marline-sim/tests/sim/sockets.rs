//! Sockets and hosts.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline::runtime::UdpSocket;
use marline::{EcnCodepoint, Runtime};
use marline_link::Seed;
use marline_sim::fabric::Plan;
use marline_sim::{Host, Sim, SimConfig};

use crate::link::Pipe;
use crate::support::{Received, read, send};

/// Two hosts and the link between them.
struct Pair {
    sim: Sim,
    a: Host,
    b: Host,
}

impl Pair {
    /// Runs for a second.
    fn wait(&mut self) {
        let second = self.a.sleep(Duration::from_secs(1));
        self.sim.run(second, Duration::from_secs(2)).unwrap();
    }
}

fn pair(pipe: &Pipe, change: impl FnOnce(&mut SimConfig)) -> Pair {
    let mut plan = Plan::new();
    let nodes = [plan.host("a"), plan.host("b")];
    plan.join("wire", pipe.duplex("wire"), &nodes).unwrap();
    let mut config = SimConfig::new(Seed::new(1));
    change(&mut config);
    let sim = Sim::new(plan.build().unwrap(), config);
    let [a, b] = ["a", "b"].map(|name| sim.host(name).unwrap());
    Pair { sim, a, b }
}

#[test]
fn segments_become_packets() {
    let mut pair = pair(&Pipe::new(10, 1), |_| {});
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let from = a.bind(a.at(0)).unwrap();
    let to = b.bind(([0, 0, 0, 0], 9).into()).unwrap();
    assert_eq!(from.local_addr().unwrap(), a.at(49_152));
    let payload: Vec<u8> = (0..=249).collect();
    send(&*from, b.at(9), &payload, Some(100)).unwrap();
    pair.wait();
    let got = read(&*to);
    let lens: Vec<_> = got.iter().map(|received| received.meta.len).collect();
    assert_eq!(lens, [100, 100, 50]);
    let bytes: Vec<u8> = got.iter().flat_map(|one| one.payload.clone()).collect();
    assert_eq!(bytes, payload);
    let meta = got[0].meta;
    assert_eq!((meta.remote, meta.stride), (a.at(49_152), 100));
    assert_eq!(meta.local_ip, Some(b.at(0).ip()));
    assert_eq!(meta.ecn, Some(EcnCodepoint::Ect0));
    let wire = pair.sim.link("wire").unwrap();
    assert_eq!(wire.arrived_bytes(&a), 250 + 3 * 28);
    assert_eq!(pair.sim.statistics().packets_delivered, 3);
}

#[test]
fn refused_and_dropped_datagrams_are_counted() {
    let mut pair = pair(&Pipe::new(1000, 1), |config| config.receive_buffer = 3000);
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let from = a.bind(a.at(0)).unwrap();
    let to = b.bind(b.at(9)).unwrap();
    let too_large = send(&*from, b.at(9), &[0; 1473], None).unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::InvalidInput);
    for _ in 0..3 {
        send(&*from, b.at(9), &[0; 1400], None).unwrap();
    }
    send(&*from, b.at(10), b"nobody", None).unwrap();
    send(&*from, ([1, 2, 3, 4], 5).into(), b"nowhere", None).unwrap();
    pair.wait();
    assert_eq!(read(&*to).len(), 2);
    let seen = pair.sim.statistics();
    assert_eq!((seen.too_large, seen.buffer_full), (1, 1));
    assert_eq!((seen.no_socket, seen.packets_lost), (1, 1));
    assert_eq!((seen.packets_sent, seen.packets_delivered), (5, 2));
}

#[test]
fn an_address_is_bound_once_until_its_socket_is_dropped() {
    let Pair { a, b, .. } = pair(&Pipe::new(1, 1), |_| {});
    let kind = |result: std::io::Result<Arc<dyn UdpSocket>>| result.map(drop).map_err(|e| e.kind());
    let any = |port| SocketAddr::from(([0, 0, 0, 0], port));
    let first = a.bind(a.at(80)).unwrap();
    assert_eq!(kind(a.bind(a.at(80))), Err(ErrorKind::AddrInUse));
    assert_eq!(kind(a.bind(any(80))), Err(ErrorKind::AddrInUse));
    assert_eq!(kind(a.bind(b.at(80))), Err(ErrorKind::AddrNotAvailable));
    assert_eq!(
        kind(a.bind("[::]:0".parse().unwrap())),
        Err(ErrorKind::Unsupported)
    );
    assert_eq!(kind(b.bind(any(80))), Ok(()));
    drop(first);
    assert_eq!(kind(a.bind(any(80))), Ok(()));
    let ports = [0; 2].map(|port| a.bind(any(port)).unwrap());
    assert_eq!(
        ports.map(|socket| socket.local_addr().unwrap().port()),
        [49_152, 49_153]
    );
}

#[test]
fn corrupted_packets_are_dropped_unless_checksums_are_off() {
    let pipe = Pipe {
        corruption: 5000,
        ..Pipe::new(100, 1)
    };
    let run = |checksums| {
        let mut pair = pair(&pipe, |config| config.checksums = checksums);
        let (a, b) = (pair.a.clone(), pair.b.clone());
        let from = a.bind(a.at(0)).unwrap();
        let to = b.bind(b.at(9)).unwrap();
        for _ in 0..200 {
            send(&*from, b.at(9), &[0; 1000], None).unwrap();
        }
        pair.wait();
        let got = read(&*to);
        let bits = |one: &Received| one.payload.iter().map(|byte| byte.count_ones()).sum();
        let flipped: Vec<u32> = got.iter().map(bits).collect();
        (flipped, pair.sim.statistics().checksum_failures)
    };
    let (flipped, failures) = run(true);
    assert!((50..150).contains(&failures), "{failures}");
    assert_eq!(flipped, vec![0; 200 - failures as usize]);
    let (flipped, in_headers) = run(false);
    assert_eq!(flipped.len() as u64 + in_headers, 200);
    assert!(in_headers < 10);
    assert_eq!(
        flipped.iter().filter(|&&bits| bits == 1).count() as u64,
        failures - in_headers
    );
}

#[test]
fn seeds_differ_between_hosts_and_repeat_in_equal_runs() {
    let seeds = || {
        let Pair { a, b, .. } = pair(&Pipe::new(1, 1), |_| {});
        [&a, &a, &b].map(|host| host.seed().unwrap())
    };
    let [first, second, other] = seeds();
    assert!(first != second && first != other && second != other);
    assert_eq!(seeds(), [first, second, other]);
}

#[test]
fn captures_hold_every_packet() {
    let mut pair = pair(&Pipe::new(10, 1), |_| {});
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let file = tempfile::NamedTempFile::new().unwrap();
    let capture = pair.sim.capture(file.reopen().unwrap()).unwrap();
    let from = a.bind(a.at(0)).unwrap();
    let _to = b.bind(b.at(9)).unwrap();
    send(&*from, b.at(9), b"hello", None).unwrap();
    pair.wait();
    capture.finish().unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    assert!(bytes.windows(5).any(|window| window == b"hello"));
}

#[test]
fn every_packet_is_delivered_or_counted_as_lost() {
    let pipe = Pipe {
        loss: 1000,
        corruption: 1000,
        buffer: 20_000,
        ..Pipe::new(50, 3)
    };
    let mut pair = pair(&pipe, |config| config.receive_buffer = 5000);
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let from = a.bind(a.at(0)).unwrap();
    let to = b.bind(b.at(9)).unwrap();
    let mut read_packets = 0;
    for round in 0..50 {
        for port in [9, 9, 10] {
            send(&*from, b.at(port), &vec![0; 50 * round], Some(700)).unwrap();
        }
        if round % 10 == 0 {
            pair.wait();
            read_packets += read(&*to).len() as u64;
        }
    }
    pair.wait();
    read_packets += read(&*to).len() as u64;
    let seen = pair.sim.statistics();
    assert_eq!(read_packets, seen.packets_delivered);
    let dropped = [
        seen.packets_lost,
        seen.checksum_failures,
        seen.buffer_full,
        seen.no_socket,
    ];
    assert!(dropped.iter().all(|&packets| packets > 0), "{dropped:?}");
    assert_eq!(
        seen.packets_sent,
        seen.packets_delivered + dropped.iter().sum::<u64>()
    );
}
