//! Hosts with several interfaces.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use marline_link::{Duplex, Seed};
use marline_sim::fabric::Plan;

use crate::link::Spec;
use crate::setup;

/// Sends a datagram from one address to another, and returns the source that its receiver sees.
fn send(pair: &setup::Pair, from: Ipv4Addr, to: Ipv4Addr) -> Ipv4Addr {
    let bind = |host, address| {
        let bound = pair
            .emulation
            .inside(host, || UdpSocket::bind((address, 0)));
        bound.unwrap().unwrap()
    };
    let receiver = bind(pair.server, to);
    receiver
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let sender = bind(pair.client, from);
    sender
        .send_to(b"x", receiver.local_addr().unwrap())
        .unwrap();
    let (_, from) = receiver.recv_from(&mut [0; 9]).unwrap();
    let std::net::IpAddr::V4(from) = from.ip() else {
        panic!("{from}");
    };
    from
}

#[test]
fn source_address_chooses_the_link() {
    let mut plan = Plan::new();
    let (client, server) = (plan.host("client"), plan.host("server"));
    for name in ["first", "second"] {
        let wire = || Spec::delay(1).build(Seed::new(1));
        let wires = Duplex::new(wire(), wire());
        plan.join(name, Box::new(wires), &[client, server]).unwrap();
    }
    let mut fabric = plan.build().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    fabric.tap(Box::new(move |passage| {
        sender.send(passage.medium.unwrap().index()).unwrap();
    }));
    let Some(pair) = setup::start(fabric, client, server) else {
        return;
    };
    let own = pair.emulation.addresses(client).to_vec();
    let theirs = pair.emulation.addresses(server).to_vec();
    let mut expected = Vec::new();
    for link in 0..2 {
        assert_eq!(send(&pair, own[link], theirs[link]), own[link]);
        // An unbound socket uses the address on the destination's link.
        let unchosen = Ipv4Addr::UNSPECIFIED;
        assert_eq!(send(&pair, unchosen, theirs[link]), own[link]);
        expected.extend([link; 4]);
    }
    pair.emulation.stop();
    // Each packet enters a medium and leaves it.
    assert_eq!(receiver.iter().collect::<Vec<_>>(), expected);
}
