//! A link model makes the same decisions in real time and in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use marline_lab::emu::IpPacket;
use marline_link::{DropReason, Packet, Seed, Time};
use marline_sim::fabric::{Event, Fabric, Node, Routed, Verdict};

use crate::link::Spec;
use crate::setup;

const PACKETS: usize = 500;
const PAYLOAD: usize = 500;
const HEADERS: usize = 28;
const GAP: Duration = Duration::from_millis(1);

/// The usual time for programs to pass a packet to the emulator and to receive it.
const PROCESSING_ALLOWANCE: Duration = Duration::from_millis(5);

/// Random loss, and a queue that overflows: packets arrive at 4.2 Mb/s and leave at 3 Mb/s.
const SPEC: Spec = Spec {
    bits_per_second: 3_000_000,
    buffer: Duration::from_millis(20),
    loss: 0.05,
    delay: Duration::from_millis(15),
};

/// The outcomes of the client's packets, by index.
#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    arrived: Vec<(usize, Time)>,
    lost: Vec<(usize, Time, DropReason)>,
}

/// A packet with an index and the addresses of its ends.
struct Numbered(usize, [IpAddr; 2]);

impl Routed for Numbered {
    fn source(&self) -> IpAddr {
        self.1[0]
    }

    fn destination(&self) -> IpAddr {
        self.1[1]
    }
}

/// The outcomes in virtual time of packets that are sent at `times`.
fn in_virtual_time(seed: Seed, times: impl Iterator<Item = Time>) -> Outcomes {
    let setup::Network {
        mut fabric,
        client,
        server,
    } = setup::network(SPEC, seed);
    let ends = [client, server].map(|node| fabric.addresses(node)[0]);
    let mut outcomes = Outcomes::default();
    for (index, time) in times.enumerate() {
        collect(&mut fabric, time, &mut outcomes);
        let packet = Packet::new((PAYLOAD + HEADERS) as u32, Numbered(index, ends));
        fabric.send(time, client, packet);
    }
    while let Some(next) = fabric.next_event() {
        collect(&mut fabric, next, &mut outcomes);
    }
    outcomes
}

fn collect(fabric: &mut Fabric<Numbered>, now: Time, outcomes: &mut Outcomes) {
    while let Some(event) = fabric.poll(now) {
        match event {
            Event::Arrived { at, packet, .. } => outcomes.arrived.push((packet.body.0, at)),
            Event::Dropped {
                at, packet, reason, ..
            } => outcomes.lost.push((packet.body.0, at, reason)),
        }
    }
}

/// The observations of a tap: when packets were sent, and their outcomes.
#[derive(Debug, Default)]
struct Seen {
    sent: Vec<Time>,
    outcomes: Outcomes,
}

#[test]
fn the_model_drops_the_same_packets_in_real_and_virtual_time() {
    let seed = Seed::new(7);
    let setup::Network {
        mut fabric,
        client,
        server,
    } = setup::network::<IpPacket>(SPEC, seed);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let sink = Arc::clone(&seen);
    fabric.tap(Box::new(move |passage| {
        if passage.from != client {
            return;
        }
        // The index is in the first bytes of the payload.
        let bytes = &passage.packet.body.bytes()[HEADERS..];
        let index = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        let mut seen = sink.lock().unwrap();
        match passage.verdict {
            Verdict::Entered => seen.sent.push(passage.at),
            Verdict::Left => seen.outcomes.arrived.push((index, passage.at)),
            Verdict::Dropped(reason) => seen.outcomes.lost.push((index, passage.at, reason)),
        }
    }));
    let Some(pair) = setup::start(fabric, client, server) else {
        return;
    };
    let delays = send_numbered(&pair, client, server);
    let report = pair.emulation.stop();
    println!("{:#}", report.to_json());

    let seen = seen.lock().unwrap();
    assert_eq!(seen.sent.len(), PACKETS);
    let lost: BTreeSet<_> = seen.outcomes.lost.iter().map(|lost| lost.0).collect();
    let reasons: BTreeSet<_> = seen.outcomes.lost.iter().map(|lost| lost.2).collect();
    assert_eq!(reasons.len(), 2, "both reasons: {reasons:?}");
    let all: BTreeSet<_> = (0..PACKETS).collect();
    let received: BTreeSet<_> = delays.keys().copied().collect();
    assert_eq!(&all - &lost, received, "all other packets were received");

    // Programs measure the delays of the model plus the lateness of the emulator.
    let arrived = seen.outcomes.arrived.iter();
    let mut excess: Vec<_> = arrived
        .map(|&(index, at)| delays[&index].checked_sub(at.since(seen.sent[index])))
        .map(|excess| excess.expect("nothing is early"))
        .collect();
    excess.sort();
    let median = excess[excess.len() / 2];
    println!("beyond the model's delay: median {median:?}");
    assert!(
        median <= report.lateness.max() + PROCESSING_ALLOWANCE,
        "{median:?}"
    );

    // Packets sent at the observed times have the same outcomes, to the nanosecond.
    assert_eq!(
        in_virtual_time(seed, seen.sent.iter().copied()),
        seen.outcomes
    );

    // Packets sent at regular times have the same random losses among those that pass the queue.
    let spaced = |spec: Spec| {
        let mut model = spec.build::<()>(seed.of("there"));
        (0..PACKETS).filter(move |&index| {
            let now = Time::ZERO + Duration::from_secs(index as u64);
            model.push(now, Packet::new((PAYLOAD + HEADERS) as u32, ()));
            let exit = model.pop(now + Duration::from_millis(500)).unwrap();
            exit.dropped.is_some()
        })
    };
    let through_queue = seen.outcomes.lost.iter();
    let full = through_queue.filter(|lost| lost.2 == DropReason::QueueFull);
    let full: BTreeSet<_> = full.map(|lost| lost.0).collect();
    let passed: Vec<_> = (0..PACKETS).filter(|index| !full.contains(index)).collect();
    let expected: Vec<_> = spaced(SPEC)
        .map_while(|nth| passed.get(nth).copied())
        .collect();
    let random = seen.outcomes.lost.iter();
    let random: Vec<_> = random
        .filter(|lost| lost.2 == DropReason::Loss)
        .map(|lost| lost.0)
        .collect();
    assert_eq!(random, expected);
}

/// Sends numbered datagrams at a constant rate, late ones at once. Returns the delays of those that arrived, by index.
#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn send_numbered(pair: &setup::Pair, client: Node, server: Node) -> BTreeMap<usize, Duration> {
    let emulation = &pair.emulation;
    let to = (emulation.addresses(server)[0], 9_000);
    let receiver = emulation
        .inside(server, || UdpSocket::bind(to).unwrap())
        .unwrap();
    let sender = emulation
        .inside(client, || UdpSocket::bind(("0.0.0.0", 0)).unwrap())
        .unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let all_sent = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&all_sent);
    let receiving = thread::spawn(move || {
        let mut received = BTreeMap::new();
        let mut buffer = [0; PAYLOAD];
        loop {
            // Nothing follows a second without packets that began after the last was sent.
            let may_end = ends.load(Ordering::Acquire);
            if receiver.recv(&mut buffer).is_ok() {
                let index = usize::from(u16::from_be_bytes([buffer[0], buffer[1]]));
                received.insert(index, Instant::now());
            } else if may_end {
                return received;
            }
        }
    });
    let mut sent = Vec::new();
    let start = Instant::now();
    for index in 0..PACKETS {
        thread::sleep((start + GAP * index as u32).saturating_duration_since(Instant::now()));
        let mut payload = [0; PAYLOAD];
        payload[..2].copy_from_slice(&(index as u16).to_be_bytes());
        sent.push(Instant::now());
        sender.send_to(&payload, to).unwrap();
    }
    all_sent.store(true, Ordering::Release);
    let received = receiving.join().unwrap().into_iter();
    received
        .map(|(index, at)| (index, at.duration_since(sent[index])))
        .collect()
}
