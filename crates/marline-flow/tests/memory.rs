//! The memory of the table of flows: a scan or a flood makes a flow of each packet.

#![expect(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a test fails by panicking, and counts what is allocated"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use marline_flow::capture::{LinkType, Packet};
use marline_flow::output::{OutputError, Sink};
use marline_flow::{Exporter, Options, Record, Sources};

/// Counts allocated bytes, and their maximum.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all; its results are passed on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts records.
struct Count(usize);

impl Sink for Count {
    fn write(&mut self, _record: &Record) -> Result<(), OutputError> {
        self.0 += 1;
        Ok(())
    }
}

/// A packet of IPv4 of the `n`th sender, with ports and what follows.
fn packet(n: u32, protocol: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
    let length = (24 + rest.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 7]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend((0x0a00_0000 + n).to_be_bytes());
    packet.extend([192, 0, 2, 1]);
    packet.extend([0x9c, 0x40, 1, 0xbb]);
    packet.extend(rest);
    packet
}

/// As many flows as the table's growth allows without doubling: the index of flows doubles beyond seven eighths of a power
/// of two.
const FLOWS: u32 = (1 << 17) / 8 * 7;

/// The most bytes of memory per flow, on average, while the table grows to `flows`.
fn bytes_per_flow(flows: u32, make: impl Fn(u32) -> Vec<u8>) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut exporter = Exporter::new(Options::default(), Sources::default(), Count(0));
    for n in 0..flows {
        let data = make(n);
        let packet = Packet {
            time_ns: 1_700_000_000_000_000_000 + u64::from(n) * 1000,
            link: LinkType::Raw,
            length: data.len(),
            data: &data,
        };
        exporter.packet(&packet).unwrap();
    }
    assert_eq!(exporter.active_flows(), flows as usize);
    let held = HELD.load(Ordering::Relaxed) - before;
    let growing = MOST.load(Ordering::Relaxed) - before;
    MOST.store(HELD.load(Ordering::Relaxed), Ordering::Relaxed);
    let finished = exporter.finish().unwrap();
    assert_eq!(finished.sink.0, flows as usize);
    let most = MOST.load(Ordering::Relaxed) - before;
    assert!(most - held < held / 10, "records are made one by one");
    growing / flows as usize
}

/// Bytes per flow of SYNs, of single datagrams and of first fragments.
fn assert_small(flows: u32, limit: usize) {
    let syn = [
        &[0, 0, 0, 1][..],
        &[0; 4],
        &[0x50, 2],
        &[0xff, 0xff, 0, 0, 0, 0],
    ]
    .concat();
    let datagram = |length: usize| {
        let header = ((8 + length) as u16).to_be_bytes();
        [&header[..], &[0, 0], &vec![7; length]].concat()
    };
    let (single, first) = (datagram(40), datagram(1000));
    for (kind, bytes) in [
        ("SYN", bytes_per_flow(flows, |n| packet(n, 6, 0, &syn))),
        (
            "datagram",
            bytes_per_flow(flows, |n| packet(n, 17, 0, &single)),
        ),
        (
            "fragment",
            bytes_per_flow(flows, |n| packet(n, 17, 0x2000, &first)),
        ),
    ] {
        println!("{kind}: {bytes} bytes");
        assert!(bytes < limit, "{kind}: {bytes}");
    }
}

#[test]
fn a_flow_of_one_packet_takes_less_than_200_bytes_while_the_table_grows() {
    assert_small(FLOWS, 200);
}

#[test]
#[ignore = "make attack"]
fn a_million_flows_of_one_packet_take_less_than_200_bytes_each() {
    assert_small(1_000_000, 200);
}
