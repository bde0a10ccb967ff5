use std::net::{IpAddr, Ipv4Addr};

use marline_link::{Delay, Duplex};
use proptest::prelude::*;

use super::*;

/// Ports of source and destination of a packet; those inside are 10.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ports([u16; 2], bool);

impl Routed for Ports {
    const HAS_PORTS: bool = true;

    fn source(&self) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, if self.1 { 1 } else { 2 }).into()
    }

    fn destination(&self) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, if self.1 { 2 } else { 1 }).into()
    }

    fn udp_ports(&self) -> Option<[u16; 2]> {
        Some(self.0)
    }

    fn set_udp_ports(&mut self, ports: [u16; 2]) {
        self.0 = ports;
    }
}

fn nat(timeout: u64) -> Nat<Ports> {
    let delay = || Box::new(Delay::new(Duration::from_millis(10))) as Box<_>;
    let medium = Duplex::new(delay(), delay());
    Nat::new(Box::new(medium), Duration::from_secs(timeout), Seed::new(1))
}

fn seconds(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

/// The port that the server sees of a packet sent at `at`.
fn seen(nat: &mut Nat<Ports>, at: Time, port: u16) -> u16 {
    nat.push(at, 0, 1, Packet::new(100, Ports([port, 443], true)));
    let carried = nat.pop(at + Duration::from_millis(10)).unwrap();
    assert_eq!((carried.to, carried.exit.dropped), (1, None));
    carried.exit.packet.body.0[0]
}

/// The port inside at which an answer to `port` that is sent at `at` arrives.
fn answered(nat: &mut Nat<Ports>, at: Time, port: u16) -> Result<u16, DropReason> {
    nat.push(at, 1, 0, Packet::new(100, Ports([443, port], false)));
    let exit = nat.pop(at + Duration::from_millis(10)).unwrap().exit;
    match exit.dropped {
        None => Ok(exit.packet.body.0[1]),
        Some(reason) => Err(reason),
    }
}

#[test]
fn a_mapping_lives_while_packets_leave_and_changes_its_port_after_that() {
    let mut nat = nat(30);
    let first = seen(&mut nat, seconds(0), 5000);
    assert_eq!(seen(&mut nat, seconds(30), 5000), first);
    let second = seen(&mut nat, seconds(61), 5000);
    assert_ne!(first, second);
    assert_eq!(answered(&mut nat, seconds(62), second), Ok(5000));
    assert_eq!(
        answered(&mut nat, seconds(62), first),
        Err(DropReason::NoMapping)
    );
}

#[test]
fn answers_do_not_refresh_a_mapping() {
    let mut nat = nat(30);
    let port = seen(&mut nat, seconds(0), 5000);
    assert_eq!(answered(&mut nat, seconds(25), port), Ok(5000));
    assert_eq!(
        answered(&mut nat, seconds(31), port),
        Err(DropReason::NoMapping)
    );
}

proptest! {
    #[test]
    fn inner_ports_have_outer_ports_of_their_own(ports in prop::collection::btree_set(any::<u16>(), 1..50)) {
        let mut nat = nat(30);
        let outer: std::collections::BTreeSet<_> =
            ports.iter().map(|port| seen(&mut nat, seconds(1), *port)).collect();
        prop_assert_eq!(outer.len(), ports.len());
        prop_assert!(outer.iter().all(|port| *port >= LOWEST));
        for port in &ports {
            let outer = seen(&mut nat, seconds(2), *port);
            prop_assert_eq!(answered(&mut nat, seconds(3), outer), Ok(*port));
        }
    }
}
