//! Distribution by the kernel, with real sockets.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::{EndpointConfig, QuicLb, QuicLbConfig, QuicLbFormat, ServerId};

use super::*;

const WORKERS: u8 = 3;

/// The number of the socket that gets a datagram from a new port.
fn receiver(sockets: &[UdpSocket], datagram: &[u8]) -> usize {
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    client
        .send_to(datagram, sockets[0].local_addr().unwrap())
        .unwrap();
    let mut buffer = [0; 64];
    let mut rounds = 0;
    loop {
        for (number, socket) in sockets.iter().enumerate() {
            if socket.recv(&mut buffer).is_ok() {
                return number;
            }
        }
        rounds += 1;
        assert!(rounds < 10_000, "it is lost");
    }
}

fn sockets() -> Vec<UdpSocket> {
    let sockets = bind((Ipv4Addr::LOCALHOST, 0).into(), WORKERS.into()).unwrap();
    for socket in &sockets {
        // A loopback datagram is there when the call that sent it returns, or soon after.
        socket
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
    }
    sockets
}

/// A packet with a short header whose connection ID has `first` for its first byte.
fn packet(first: u8, rest: u8) -> [u8; 30] {
    let mut packet = [rest.wrapping_mul(41); 30];
    packet[0] = 0x40 | rest & 0x3f;
    packet[1] = first;
    packet[5] = rest;
    packet
}

#[test]
fn the_kernel_reads_the_number_of_the_worker() {
    let key = WorkerKey::new(&[7; 32]);
    let sockets = sockets();
    if let Err(error) = steer(&sockets[0], &key, WorkerField::FIRST, WORKERS) {
        println!("skipped: the kernel accepts no program for a shared port: {error}");
        return;
    }
    for rest in 0..=40 {
        for worker in 0..WORKERS {
            let read =
                |first| key.worker(&packet(first, rest)[1..], WorkerField::FIRST) == Some(worker);
            let first = (0..=u8::MAX).find(|first| read(*first)).unwrap();
            let got = receiver(&sockets, &packet(first, rest));
            assert_eq!(got, usize::from(worker), "{rest}");
        }
    }
    // Long headers, and numbers that no worker has, go to any.
    let unknown = (0..=u8::MAX)
        .find(|first| key.worker(&packet(*first, 0)[1..], WorkerField::FIRST) == Some(WORKERS))
        .unwrap();
    let mut long = packet(0, 0);
    long[0] |= 0x80;
    for datagram in [long, packet(unknown, 0)] {
        let got: BTreeSet<_> = (0..64).map(|_| receiver(&sockets, &datagram)).collect();
        assert_eq!(got.len(), usize::from(WORKERS));
    }
    // What is too short for a connection ID harms nobody.
    receiver(&sockets, &[0x40, 1, 2]);
}

#[test]
fn the_kernel_reads_the_number_behind_what_a_balancer_reads() {
    let server_id = ServerId::new(&[9, 9]).unwrap();
    let format = QuicLbFormat::new(1, 2, 9, Some([3; 16])).unwrap();
    let quic_lb = QuicLbConfig::new(format, server_id, false).unwrap();
    let mut config = EndpointConfig::from_seed([7; 32]);
    config.quic_lb = Some(Arc::new(QuicLb::new(quic_lb, &[7; 32])));
    let (key, field) = (&config.worker_key, config.worker_field());
    let sockets = sockets();
    if let Err(error) = steer(&sockets[0], key, field, WORKERS) {
        println!("skipped: the kernel accepts no program for a shared port: {error}");
        return;
    }
    let last = config.id_len();
    for rest in 0..=40 {
        for worker in 0..WORKERS {
            let with = |number| {
                let mut packet = packet(rest, rest);
                packet[last] = number;
                packet
            };
            let read = |number| key.worker(&with(number)[1..], field) == Some(worker);
            let number = (0..=u8::MAX).find(|number| read(*number)).unwrap();
            let got = receiver(&sockets, &with(number));
            assert_eq!(got, usize::from(worker), "{rest}");
        }
    }
}

#[test]
fn an_address_in_use_is_an_error_although_its_user_shares_it() {
    let sockets = sockets();
    let address = sockets[0].local_addr().unwrap();
    let error = bind(address, WORKERS.into()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}
