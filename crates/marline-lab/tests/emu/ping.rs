//! Echo requests of the kernel, through the link.

use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::link::Spec;
use crate::setup;

/// Round-trip times of echo requests to `to`, one after the other.
#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn ping(to: Ipv4Addr, count: u16) -> Vec<Duration> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket.connect(&SocketAddr::from((to, 0)).into()).unwrap();
    let mut times = Vec::new();
    for sequence in 0..count {
        let [high, low] = sequence.to_be_bytes();
        // Echo request; the kernel fills in identifier and checksum.
        let start = Instant::now();
        socket.send(&[8, 0, 0, 0, 0, 0, high, low]).unwrap();
        let mut reply = [MaybeUninit::uninit(); 64];
        assert_eq!(socket.recv(&mut reply).unwrap(), 8);
        times.push(start.elapsed());
    }
    times
}

#[test]
fn ping_measures_the_delay_of_both_directions() {
    let Some(pair) = setup::pair(Spec::delay(10)) else {
        return;
    };
    let server = pair.emulation.addresses(pair.server)[0];
    let mut times = pair
        .emulation
        .inside(pair.client, || ping(server, 50))
        .unwrap();
    times.sort();
    println!(
        "ping: min {:?}, median {:?}, max {:?}",
        times[0], times[25], times[49]
    );
    let report = pair.emulation.stop();
    println!("{:#}", report.to_json());
    assert!(times[0] >= Duration::from_millis(20), "{:?}", times[0]);
    assert!(times[25] < Duration::from_millis(30), "{:?}", times[25]);
    assert_eq!(report.tally("client").unwrap().sent, 50);
    assert_eq!(report.tally("server").unwrap().arrived, 50);
    assert_eq!(report.lateness.count(), 100);
    assert_eq!(report.ignored, 0, "nothing but what programs send");
}
