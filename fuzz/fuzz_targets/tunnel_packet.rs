//! Packets inside a tunnel, and the paths of requests for one. Checks that messages about a packet are packets for its sender that
//! every link carries, that no message answers another, and that a target's path leads to the same target.
#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use marline_tunnel::icmp::packet_too_big;
use marline_tunnel::packet::{Header, MIN_MTU};
use marline_tunnel::scope::Scope;
use marline_tunnel::udp::target::Target;

fuzz_target!(|packet: &[u8]| {
    if let Ok(header) = Header::parse(packet) {
        let router: IpAddr = match header.source {
            IpAddr::V4(_) => [10, 77, 0, 1].into(),
            IpAddr::V6(_) => [0xfd77, 0, 0, 0, 0, 0, 0, 1].into(),
        };
        if let Some(message) = packet_too_big(packet, &header, MIN_MTU, router) {
            let Ok(outer) = Header::parse(&message) else {
                panic!("the message is no packet: {message:?}");
            };
            assert_eq!((outer.source, outer.destination), (router, header.source));
            assert!(message.len() <= usize::from(MIN_MTU));
            assert_eq!(
                packet_too_big(&message, &outer, MIN_MTU, header.source),
                None
            );
        }
    }
    let path = String::from_utf8_lossy(packet);
    let _ = Scope::of_path(&path);
    if let Ok(target) = Target::of_path(&path) {
        assert_eq!(Target::of_path(&target.path()), Ok(target.clone()));
        assert_eq!(target.to_string().parse(), Ok(target));
    }
});
