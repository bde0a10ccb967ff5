//! Packets of active flows allocate nothing, whatever the layers around them.

#![expect(unsafe_code, reason = "it counts what is allocated")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use marline_flow::capture::{LinkType, Packet};
use marline_flow::{Exporter, Options, Record, Sources};

/// Counts allocations.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all; its results are passed on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A packet of IPv4 between two hosts, in one direction or the other.
fn ip(of_client: bool, network: u8, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut ends = [[10, network, 0, 1], [10, network, 0, 2]];
    if !of_client {
        ends.reverse();
    }
    let length = (20 + content.len() as u16).to_be_bytes();
    let header = [
        0x45, 0, length[0], length[1], 0, 7, 0, 0, 64, protocol, 0, 0,
    ];
    [&header[..], &ends.concat(), content].concat()
}

fn udp(of_client: bool, network: u8, ports: [u16; 2], content: &[u8]) -> Vec<u8> {
    let [mut from, mut to] = ports;
    if !of_client {
        (from, to) = (to, from);
    }
    let fields = [from, to, 8 + content.len() as u16, 0].map(u16::to_be_bytes);
    ip(
        of_client,
        network,
        17,
        &[&fields.concat(), content].concat(),
    )
}

fn tcp(of_client: bool, network: u8, content: &[u8]) -> Vec<u8> {
    let [from, to] = if of_client {
        [40_000u16, 80]
    } else {
        [80, 40_000]
    };
    let header = [
        &[from.to_be_bytes(), to.to_be_bytes()].concat()[..],
        &[0, 0, 0, 9, 0, 0, 0, 9, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0],
    ];
    ip(of_client, network, 6, &[&header.concat(), content].concat())
}

fn ethernet(kind: [u8; 2], content: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind, content].concat()
}

/// Frames of flows in all kinds of layers, in this direction.
fn frames(of_client: bool) -> Vec<Vec<u8>> {
    let datagram = udp(of_client, 0, [40_000, 443], &[7; 100]);
    let segment = tcp(of_client, 0, &[9; 100]);
    let frame = ethernet([8, 0], &datagram);
    // Tunnels whose ends choose identifiers.
    let own = if of_client { 1 } else { 2 };
    let length = (datagram.len() as u16).to_be_bytes();
    let gtp = [
        &[0x30, 255, length[0], length[1], 0, 0, 0, own][..],
        &datagram,
    ]
    .concat();
    let vxlan = |id| [&[8, 0, 0, 0, 0, 0, id, 0][..], &frame].concat();
    let labels = [&[0, 0, own << 4, 64, 0, 0, 0x11, 64][..], &datagram].concat();
    let outer = |ports, content: &[u8]| ethernet([8, 0], &udp(of_client, 1, ports, content));
    vec![
        frame.clone(),
        ethernet([8, 0], &segment),
        ethernet([0x81, 0], &[&[0, 5, 8, 0][..], &datagram].concat()),
        ethernet(
            [0x88, 0xa8],
            &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], &segment].concat(),
        ),
        outer([2152, 2152], &gtp),
        outer([50_000, 4789], &vxlan(5)),
        outer([50_000, 4789], &vxlan(6)),
        outer([50_000, 6635], &labels),
        ethernet([0x88, 0x47], &labels),
        ethernet([8, 0], &ip(of_client, 1, 4, &segment)),
        ethernet(
            [8, 0],
            &ip(of_client, 1, 47, &[&[0, 0, 8, 0][..], &datagram].concat()),
        ),
    ]
}

#[test]
fn packets_of_flows_under_way_allocate_nothing() {
    // Ports of tunnels are those of the receiver, of both ends.
    let frames: Vec<_> = [true, false].into_iter().flat_map(frames).collect();
    let mut exporter = Exporter::new(Options::default(), Sources::default(), Vec::<Record>::new());
    let mut time_ns = 1_700_000_000_000_000_000;
    let mut send = |rounds: usize| {
        for _ in 0..rounds {
            for frame in &frames {
                time_ns += 1000;
                let packet = Packet {
                    time_ns,
                    link: LinkType::Ethernet,
                    length: frame.len(),
                    data: frame,
                };
                exporter.packet(&packet).unwrap();
            }
        }
        exporter.active_flows()
    };
    // The beginnings of flows are inspected.
    let flows = send(200);
    let before = ALLOCATED.load(Ordering::Relaxed);
    assert_eq!(send(1000), flows);
    let allocated = ALLOCATED.load(Ordering::Relaxed) - before;
    assert_eq!(allocated, 0, "in {} packets", 1000 * frames.len());
}
