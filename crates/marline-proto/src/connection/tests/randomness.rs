//! Random numbers visible to peers come from the cryptographic generator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::*;
use crate::config::MakeObserver;
use crate::observe::events::{Initiator, PacketKind};
use crate::observe::{Event as Observed, Observer};
use crate::rng::drawn;
use marline_wire::frame::{Frame, Frames};
use marline_wire::packet::{self, Packet};

/// The random values in the packets of a run.
#[derive(Debug, Default)]
struct Shown {
    ids: BTreeSet<Vec<u8>>,
    challenges: BTreeSet<[u8; 8]>,
    /// Values of reserved transport parameters.
    reserved: BTreeSet<Vec<u8>>,
    /// Numbers of 1-RTT packets, by side.
    numbers: BTreeMap<Side, BTreeSet<u64>>,
}

struct Recorder {
    side: Side,
    shown: Arc<Mutex<Shown>>,
}

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        let mut shown = self.shown.lock().unwrap();
        match event {
            Observed::PacketSent(sent) => {
                if let (PacketKind::OneRtt, Some(number)) = (sent.kind, sent.number) {
                    shown.numbers.entry(self.side).or_default().insert(number);
                }
                for frame in Frames::new(sent.payload).flatten() {
                    match frame {
                        Frame::NewConnectionId(issued) => {
                            shown.ids.insert(issued.id.to_vec());
                        }
                        Frame::PathChallenge(challenge) => {
                            shown.challenges.insert(challenge.data);
                        }
                        _ => {}
                    }
                }
            }
            Observed::ParametersSet(set) if set.initiator == Initiator::Local => {
                let reserved = set.parameters.grease.as_ref();
                shown
                    .reserved
                    .extend(reserved.map(|grease| grease.value.clone()));
            }
            _ => {}
        }
    }
}

/// A run with a Retry, new connection IDs of both ends, a migration and enough packets for skipped numbers.
fn run() -> Shown {
    let shown = Arc::<Mutex<Shown>>::default();
    let record = |shown: &Arc<Mutex<Shown>>| -> MakeObserver {
        let shown = Arc::clone(shown);
        Arc::new(move |info: &ConnectionInfo| {
            let (side, shown) = (info.side, Arc::clone(&shown));
            Some(Box::new(Recorder { side, shown }) as Box<dyn Observer>)
        })
    };
    let observer = record(&shown);
    let mut pair = Pair::with(PairConfig {
        adjust_server: Box::new(move |server| {
            server.retry = RetryPolicy::Always;
            server.observer = Some(observer);
        }),
        ..PairConfig::default()
    });
    pair.client_config.observer = Some(record(&shown));
    let headers = Arc::clone(&shown);
    pair.network.filter = Some(Box::new(move |_, datagram| {
        let mut shown = headers.lock().unwrap();
        match packet::parse(&datagram.bytes, 8, true) {
            Ok(Packet::Protected(header)) => {
                for id in [header.dcid, header.scid] {
                    shown.ids.insert(id.to_vec());
                }
            }
            Ok(Packet::Retry(retry)) => {
                shown.ids.insert(retry.scid.to_vec());
            }
            _ => {}
        }
        false
    }));
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(1_000_000));
    pair.drive_until(Duration::from_millis(100), |pair| transfer.advance(pair));
    pair.client(ends.client).rotate_connection_ids();
    pair.server(ends.server).rotate_connection_ids();
    pair.migrate(ends.client, "198.51.100.7:50000".parse().unwrap());
    transfer.complete(&mut pair);
    drop(pair);
    Arc::into_inner(shown).unwrap().into_inner().unwrap()
}

#[test]
fn ids_challenges_and_skipped_numbers_are_drawn_from_the_cryptographic_generator() {
    drawn::start();
    let shown = run();
    for id in shown.ids.iter().filter(|id| !id.is_empty()) {
        assert!(drawn::has(id), "connection ID {id:x?}");
    }
    for data in &shown.challenges {
        assert!(drawn::has(data), "PATH_CHALLENGE {data:x?}");
    }
    for value in &shown.reserved {
        assert!(drawn::has(value), "reserved parameter {value:x?}");
    }
    assert!(shown.ids.len() > 12, "{} connection IDs", shown.ids.len());
    assert!(shown.challenges.len() > 1, "{:?}", shown.challenges);
    let mut skipped = 0;
    for numbers in shown.numbers.values() {
        let mut last = 0;
        let largest = numbers.last().copied().unwrap_or(0);
        for number in (0..largest).filter(|number| !numbers.contains(number)) {
            let base = last.clamp(64, 1 << 16);
            let distance: u64 = number - last - base;
            assert!(
                drawn::has(&distance.to_le_bytes()),
                "packet number {number}"
            );
            last = number;
            skipped += 1;
        }
    }
    assert!(skipped > 2, "{skipped} numbers were skipped");
}
