//! What sockets and hosts do.

use std::io::{ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use marline::proto::FourTuple;
use marline::runtime::{RecvMeta, UdpSocket};
use marline::{EcnCodepoint, Runtime, Transmit};
use marline_lab::fabric::Plan;
use marline_lab::sim::{Host, World, WorldConfig};
use marline_link::Seed;

use crate::link::Pipe;

fn pair(pipe: &Pipe, change: impl FnOnce(&mut WorldConfig)) -> (World, Host, Host) {
    let mut plan = Plan::new();
    let nodes = [plan.host("a"), plan.host("b")];
    plan.join("wire", pipe.duplex("wire"), &nodes).unwrap();
    let mut config = WorldConfig::new(Seed::new(1));
    change(&mut config);
    let world = World::new(plan.build().unwrap(), config);
    let [a, b] = ["a", "b"].map(|name| world.host(name).unwrap());
    (world, a, b)
}

fn send(
    from: &dyn UdpSocket,
    to: SocketAddr,
    payload: &[u8],
    segment: Option<usize>,
) -> std::io::Result<()> {
    let transmit = Transmit {
        tuple: FourTuple {
            local: from.local_addr().unwrap(),
            remote: to,
        },
        ecn: Some(EcnCodepoint::Ect0),
        size: payload.len(),
        segment_size: segment,
    };
    from.try_send(&transmit, payload)
}

/// All that is there to be read.
fn read(socket: &dyn UdpSocket) -> Vec<(RecvMeta, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let mut bytes = [0; 2000];
        let mut meta = [RecvMeta::default()];
        let mut cx = Context::from_waker(Waker::noop());
        let filled = socket.poll_recv(&mut cx, &mut [IoSliceMut::new(&mut bytes)], &mut meta);
        match filled {
            Poll::Ready(filled) => assert_eq!(filled.unwrap(), 1),
            Poll::Pending => return all,
        }
        all.push((meta[0], bytes[..meta[0].len].to_vec()));
    }
}

fn wait(world: &mut World, host: &Host) {
    world
        .run(host.sleep(Duration::from_secs(1)), Duration::from_secs(2))
        .unwrap();
}

#[test]
fn segments_become_packets() {
    let (mut world, a, b) = pair(&Pipe::new(10, 1), |_| {});
    let from = a.bind(a.at(0)).unwrap();
    let to = b.bind(([0, 0, 0, 0], 9).into()).unwrap();
    assert_eq!(from.local_addr().unwrap(), a.at(49_152));
    let payload: Vec<u8> = (0..=249).collect();
    send(&*from, b.at(9), &payload, Some(100)).unwrap();
    wait(&mut world, &a);
    let got = read(&*to);
    assert_eq!(
        got.iter().map(|(meta, _)| meta.len).collect::<Vec<_>>(),
        [100, 100, 50]
    );
    let bytes: Vec<u8> = got.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(bytes, payload);
    let meta = got[0].0;
    assert_eq!((meta.remote, meta.stride), (a.at(49_152), 100));
    assert_eq!(meta.local_ip, Some(b.at(0).ip()));
    assert_eq!(meta.ecn, Some(EcnCodepoint::Ect0));
    assert_eq!(
        world.fabric(|fabric| {
            let wire = fabric.find_medium("wire").unwrap();
            fabric.traffic(wire, a.node()).unwrap().arrived_bytes
        }),
        250 + 3 * 28
    );
    assert_eq!(world.statistics().packets_delivered, 3);
}

#[test]
fn what_cannot_be_sent_or_kept_is_counted() {
    let (mut world, a, b) = pair(&Pipe::new(1000, 1), |config| config.receive_buffer = 3000);
    let from = a.bind(a.at(0)).unwrap();
    let to = b.bind(b.at(9)).unwrap();
    let too_large = send(&*from, b.at(9), &[0; 1473], None).unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::InvalidInput);
    for _ in 0..3 {
        send(&*from, b.at(9), &[0; 1400], None).unwrap();
    }
    send(&*from, b.at(10), b"nobody", None).unwrap();
    send(&*from, ([1, 2, 3, 4], 5).into(), b"nowhere", None).unwrap();
    wait(&mut world, &a);
    assert_eq!(read(&*to).len(), 2);
    let seen = world.statistics();
    assert_eq!((seen.too_large, seen.buffer_full), (1, 1));
    assert_eq!((seen.no_socket, seen.packets_lost), (1, 1));
    assert_eq!((seen.packets_sent, seen.packets_delivered), (5, 2));
}

#[test]
fn addresses_are_given_once() {
    let (_world, a, b) = pair(&Pipe::new(1, 1), |_| {});
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
fn flipped_bits_are_dropped_or_seen() {
    let pipe = Pipe {
        corruption: 5000,
        ..Pipe::new(100, 1)
    };
    let run = |checksums| {
        let (mut world, a, b) = pair(&pipe, |config| config.checksums = checksums);
        let from = a.bind(a.at(0)).unwrap();
        let to = b.bind(b.at(9)).unwrap();
        for _ in 0..200 {
            send(&*from, b.at(9), &[0; 1000], None).unwrap();
        }
        wait(&mut world, &a);
        let got = read(&*to);
        let flipped: Vec<u32> = got
            .iter()
            .map(|(_, bytes)| bytes.iter().map(|byte| byte.count_ones()).sum())
            .collect();
        (flipped, world.statistics().checksum_failures)
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
fn seeds_differ_and_repeat() {
    let seeds = || {
        let (_world, a, b) = pair(&Pipe::new(1, 1), |_| {});
        [&a, &a, &b].map(|host| host.seed().unwrap())
    };
    let [first, second, other] = seeds();
    assert!(first != second && first != other && second != other);
    assert_eq!(seeds(), [first, second, other]);
}

#[test]
fn captures_hold_every_packet() {
    let (mut world, a, b) = pair(&Pipe::new(10, 1), |_| {});
    let file = tempfile::NamedTempFile::new().unwrap();
    let capture = world.capture(file.reopen().unwrap()).unwrap();
    let from = a.bind(a.at(0)).unwrap();
    let _to = b.bind(b.at(9)).unwrap();
    send(&*from, b.at(9), b"hello", None).unwrap();
    wait(&mut world, &a);
    capture.finish().unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    assert!(bytes.windows(5).any(|window| window == b"hello"));
}

/// What is sent is delivered, or lost in a way that is counted.
#[test]
fn no_packet_is_forgotten() {
    let pipe = Pipe {
        loss: 1000,
        corruption: 1000,
        buffer: 20_000,
        ..Pipe::new(50, 3)
    };
    let (mut world, a, b) = pair(&pipe, |config| config.receive_buffer = 5000);
    let from = a.bind(a.at(0)).unwrap();
    let to = b.bind(b.at(9)).unwrap();
    let mut read_packets = 0;
    for round in 0..50 {
        for port in [9, 9, 10] {
            send(&*from, b.at(port), &vec![0; 50 * round], Some(700)).unwrap();
        }
        if round % 10 == 0 {
            wait(&mut world, &a);
            read_packets += read(&*to).len() as u64;
        }
    }
    wait(&mut world, &a);
    read_packets += read(&*to).len() as u64;
    let seen = world.statistics();
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
