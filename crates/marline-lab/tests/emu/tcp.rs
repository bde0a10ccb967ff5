//! The kernel's TCP, through the link.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::link::Spec;
use crate::setup;

/// Bytes a second that CUBIC gets from the client to the server within `length`, after `warm_up`.
#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn goodput(pair: &setup::Pair, warm_up: Duration, length: Duration) -> f64 {
    let server = pair.emulation.addresses(pair.server)[0];
    let listener = pair
        .emulation
        .inside(pair.server, || TcpListener::bind((server, 5001)).unwrap())
        .unwrap();
    let sender = pair
        .emulation
        .inside(pair.client, || connect(server))
        .unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut sender = sender;
            // Ends when the receiver closes the connection.
            while sender.write_all(&[0; 1 << 16]).is_ok() {}
        });
        let start = Instant::now();
        let mut buffer = vec![0; 1 << 18];
        while start.elapsed() < warm_up {
            assert_ne!(receiver.read(&mut buffer).unwrap(), 0);
        }
        let (start, mut bytes) = (Instant::now(), 0);
        while start.elapsed() < length {
            bytes += receiver.read(&mut buffer).unwrap();
        }
        let rate = bytes as f64 / start.elapsed().as_secs_f64();
        drop(receiver);
        rate
    })
}

fn connect(server: Ipv4Addr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_tcp_congestion(b"cubic").unwrap();
    socket
        .connect(&SocketAddr::from((server, 5001)).into())
        .unwrap();
    socket.into()
}

fn megabits(mbps: u64) -> Spec {
    Spec {
        bits_per_second: mbps * 1_000_000,
        buffer: Duration::from_millis(20),
        ..Spec::delay(10)
    }
}

#[test]
fn cubic_fills_a_hundred_megabits() {
    let mut rates = Vec::new();
    // A sender or receiver that waits for a processor loses some of the rate; a fault of the emulator would in each attempt.
    while rates.len() < 3 && !rates.iter().any(|rate| *rate >= 90.0) {
        let Some(pair) = setup::pair(megabits(100)) else {
            return;
        };
        let rate = goodput(&pair, Duration::from_secs(2), Duration::from_secs(2)) * 8.0 / 1e6;
        let report = pair.emulation.stop();
        println!("100 Mb/s: {rate:.2}; {}", report.to_json());
        if !report.is_valid(Duration::from_millis(1)) {
            println!("note: this machine is too busy to measure TCP");
            return;
        }
        rates.push(rate);
    }
    let best = rates.iter().copied().fold(0.0, f64::max);
    assert!((90.0..97.0).contains(&best), "{rates:?} Mb/s");
}
