//! Seeds of tunnels: capsules, and the packets inside.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Seeds;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A datagram to a resolver, without checksums.
const UDP: [u8; 9] = [3, 232, 0, 53, 0, 9, 0, 0, b'x'];

/// One capsule of each kind, in pieces of five bytes.
pub(super) fn capsules(seeds: &mut Seeds) {
    let assigned = [&[0x01, 7, 0, 4][..], &CLIENT.octets(), &[32]].concat();
    let requested = [0x02, 7, 1, 4, 0, 0, 0, 0, 32];
    let routes = [0x03, 10, 4, 0, 0, 0, 0, 255, 255, 255, 255, 0];
    let unknown = [0x29, 3, 1, 2, 3];
    let packet = udp4();
    let length = u8::try_from(1 + packet.len()).expect("it is short");
    let datagram = [&[0x00, length, 0][..], &packet].concat();
    let all = [
        &[4][..],
        &assigned,
        &requested,
        &routes,
        &unknown,
        &datagram,
    ];
    seeds.insert(("tunnel_capsules", "all".to_owned()), all.concat());
}

/// Packets of both versions, and paths of requests.
pub(super) fn packets(seeds: &mut Seeds) {
    let udp6 = [
        &[0x60, 0, 0, 0, 0, 9, 17, 64][..],
        &Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2).octets(),
        &Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets(),
        &UDP,
    ]
    .concat();
    for (name, bytes) in [
        ("udp4", udp4()),
        ("udp6", udp6),
        (
            "path_ip",
            b"/.well-known/masque/ip/192.0.2.0%2F24/17/".to_vec(),
        ),
        (
            "path_udp",
            b"/.well-known/masque/udp/2001%3Adb8%3A%3A42/443/".to_vec(),
        ),
    ] {
        seeds.insert(("tunnel_packet", name.to_owned()), bytes);
    }
}

fn udp4() -> Vec<u8> {
    let fields = [0x45, 0, 0, 29, 0, 1, 0x40, 0, 64, 17, 0, 0];
    [&fields[..], &CLIENT.octets(), &SERVER.octets(), &UDP].concat()
}
