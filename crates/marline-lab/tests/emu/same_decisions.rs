//! One model, two clocks: what reality decided, virtual time decides again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, UdpSocket};
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

/// What programs may need to get a packet to the emulator and from it, most of the time.
const ERRAND: Duration = Duration::from_millis(5);

/// Random loss, and a queue that fills and overflows: 4.2 Mb/s come to 3 Mb/s.
const SPEC: Spec = Spec {
    bits_per_second: 3_000_000,
    buffer: Duration::from_millis(20),
    loss: 0.05,
    delay: Duration::from_millis(15),
};

/// What happened to the packets from the client, each by its index.
#[derive(Debug, Default, PartialEq)]
struct Fates {
    arrived: Vec<(usize, Time)>,
    lost: Vec<(usize, Time, DropReason)>,
}

/// A packet that is a number.
struct Numbered(usize, [IpAddr; 2]);

impl Routed for Numbered {
    fn source(&self) -> IpAddr {
        self.1[0]
    }

    fn destination(&self) -> IpAddr {
        self.1[1]
    }
}

/// Moves packets that are sent at `times` in virtual time.
fn virtually(seed: Seed, times: impl Iterator<Item = Time>) -> Fates {
    let (mut fabric, client, server) = setup::network(SPEC, seed);
    let ends = [client, server].map(|node| fabric.addresses(node)[0]);
    let mut fates = Fates::default();
    for (index, time) in times.enumerate() {
        collect(&mut fabric, time, &mut fates);
        let packet = Packet::new((PAYLOAD + HEADERS) as u32, Numbered(index, ends));
        fabric.send(time, client, packet);
    }
    while let Some(next) = fabric.next_event() {
        collect(&mut fabric, next, &mut fates);
    }
    fates
}

fn collect(fabric: &mut Fabric<Numbered>, now: Time, fates: &mut Fates) {
    while let Some(event) = fabric.poll(now) {
        match event {
            Event::Arrived { at, packet, .. } => fates.arrived.push((packet.body.0, at)),
            Event::Dropped {
                at, packet, reason, ..
            } => fates.lost.push((packet.body.0, at, reason)),
        }
    }
}

/// What a tap saw: when packets were sent, and what became of them.
#[derive(Debug, Default)]
struct Seen {
    sent: Vec<Time>,
    fates: Fates,
}

#[test]
fn real_time_decides_as_virtual_time() {
    let seed = Seed::new(7);
    let (mut fabric, client, server) = setup::network::<IpPacket>(SPEC, seed);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let sink = Arc::clone(&seen);
    fabric.tap(Box::new(move |passage| {
        if passage.from != client {
            return;
        }
        // The number is in the first bytes behind the headers.
        let bytes = &passage.packet.body.bytes()[HEADERS..];
        let index = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        let mut seen = sink.lock().unwrap();
        match passage.verdict {
            Verdict::Entered => seen.sent.push(passage.at),
            Verdict::Left => seen.fates.arrived.push((index, passage.at)),
            Verdict::Dropped(reason) => seen.fates.lost.push((index, passage.at, reason)),
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
    let lost: BTreeSet<_> = seen.fates.lost.iter().map(|lost| lost.0).collect();
    let reasons: BTreeSet<_> = seen.fates.lost.iter().map(|lost| lost.2).collect();
    assert_eq!(reasons.len(), 2, "both reasons: {reasons:?}");
    let all: BTreeSet<_> = (0..PACKETS).collect();
    let received: BTreeSet<_> = delays.keys().copied().collect();
    assert_eq!(&all - &lost, received, "what was not lost was received");

    // Programs see the delays of the model, and how late the emulator was.
    let arrived = seen.fates.arrived.iter();
    let mut excess: Vec<_> = arrived
        .map(|&(index, at)| delays[&index].checked_sub(at.since(seen.sent[index])))
        .map(|excess| excess.expect("nothing is early"))
        .collect();
    excess.sort();
    let median = excess[excess.len() / 2];
    println!("beyond the model's delay: median {median:?}");
    assert!(median <= report.lateness.max() + ERRAND, "{median:?}");

    // At the times at which they really came: everything is equal, to the nanosecond.
    assert_eq!(virtually(seed, seen.sent.iter().copied()), seen.fates);

    // At the times at which they were meant to come: equal random losses among those that pass the queue.
    let spaced = |spec: Spec| {
        let mut model = spec.build::<()>(seed.of("there"));
        (0..PACKETS).filter(move |&index| {
            let now = Time::ZERO + Duration::from_secs(index as u64);
            model.push(now, Packet::new((PAYLOAD + HEADERS) as u32, ()));
            let exit = model.pop(now + Duration::from_millis(500)).unwrap();
            exit.dropped.is_some()
        })
    };
    let through_queue = seen.fates.lost.iter();
    let full = through_queue.filter(|lost| lost.2 == DropReason::QueueFull);
    let full: BTreeSet<_> = full.map(|lost| lost.0).collect();
    let passed: Vec<_> = (0..PACKETS).filter(|index| !full.contains(index)).collect();
    let expected: Vec<_> = spaced(SPEC)
        .map_while(|nth| passed.get(nth).copied())
        .collect();
    let random = seen.fates.lost.iter();
    let random: Vec<_> = random
        .filter(|lost| lost.2 == DropReason::Loss)
        .map(|lost| lost.0)
        .collect();
    assert_eq!(random, expected);
}

/// Sends numbered datagrams at a constant rate; how long those took that arrived, by their numbers.
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
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let receiving = thread::spawn(move || {
        let mut received = BTreeMap::new();
        let mut buffer = [0; PAYLOAD];
        while receiver.recv(&mut buffer).is_ok() {
            let index = usize::from(u16::from_be_bytes([buffer[0], buffer[1]]));
            received.insert(index, Instant::now());
        }
        received
    });
    let mut sent = Vec::new();
    for index in 0..PACKETS {
        let mut payload = [0; PAYLOAD];
        payload[..2].copy_from_slice(&(index as u16).to_be_bytes());
        sent.push(Instant::now());
        sender.send_to(&payload, to).unwrap();
        thread::sleep(GAP);
    }
    let received = receiving.join().unwrap().into_iter();
    received
        .map(|(index, at)| (index, at.duration_since(sent[index])))
        .collect()
}
