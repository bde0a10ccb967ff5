//! Records of a simulation while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::observe::{Event, Observer};
use marline::{Instant, MakeObserver};
use marline_sim::fabric::{PacketEvent, Verdict};
use marline_sim::{Datagram, Host, Sim};

use crate::outcome::{LinkRecord, LostPacket, ObjectTimes, Outcome};
use crate::page::Object;

/// The width of bins.
const BIN_NS: u64 = 10_000_000;

/// An outcome that grows. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Record(Arc<Mutex<Outcome>>);

impl Record {
    /// An empty one, for `objects` over links to `client`.
    pub(crate) fn new(objects: &[Object], client: &Host) -> Self {
        let times = |object: &Object| ObjectTimes {
            path: object.path.clone(),
            kind: object.kind.clone(),
            size: object.size,
            ..ObjectTimes::default()
        };
        Self(Arc::new(Mutex::new(Outcome {
            objects: objects.iter().map(times).collect(),
            bin_ns: BIN_NS,
            links: vec![LinkRecord::default(); client.addresses().len()],
            ..Outcome::default()
        })))
    }

    /// The outcome.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what arrives at `client`, and what is lost on the way to it.
    pub(crate) fn tap(&self, sim: &Sim, client: &Host) {
        let record = self.clone();
        let (node, addresses) = (client.node(), client.addresses().to_vec());
        let tap = move |event: &PacketEvent<'_, Datagram>| {
            let to = event.packet.body.destination.ip();
            let Some(link) = addresses.iter().position(|address| address == to) else {
                return;
            };
            let at_ns = event.at.as_nanos();
            let link = &mut record.lock().links[link];
            match event.verdict {
                Verdict::Left if event.to == Some(node) => {
                    add(&mut link.arrived, at_ns, u64::from(event.packet.size));
                }
                Verdict::Dropped(reason) => link.lost.push(LostPacket {
                    at_ns,
                    reason: reason.name(),
                }),
                _ => {}
            }
        };
        sim.fabric(|fabric| fabric.tap(Box::new(tap)));
    }

    /// `bytes` of the content of an object arrived.
    pub(crate) fn on_content(&self, index: usize, at_ns: u64, bytes: u64) {
        let object = &mut self.lock().objects[index];
        object.first_byte_ns.get_or_insert(at_ns);
        add(&mut object.arrived, at_ns, bytes);
    }

    /// Counts the packets of connections.
    pub(crate) fn observer(&self) -> MakeObserver {
        let record = self.clone();
        Arc::new(move |_| Some(Box::new(Counts(record.clone()))))
    }
}

/// Adds `bytes` to the bin of a time.
fn add(bins: &mut Vec<u64>, at_ns: u64, bytes: u64) {
    let bin = (at_ns / BIN_NS) as usize;
    if bins.len() <= bin {
        bins.resize(bin + 1, 0);
    }
    bins[bin] += bytes;
}

/// Counts the packets of a connection.
struct Counts(Record);

impl Observer for Counts {
    fn on_event(&mut self, _now: Instant, event: &Event<'_>) {
        let packets = &mut self.0.lock().packets;
        match event {
            Event::PacketSent(_) => packets.sent += 1,
            Event::PacketLost(lost) if !lost.is_mtu_probe => packets.lost += 1,
            Event::SpuriousLoss(_) => packets.spurious += 1,
            _ => {}
        }
    }
}
