//! Discontinuous reception: packets wait until the receiver is awake, which it is at the end of each cycle.

use std::sync::Arc;
use std::time::Duration;

use marline::settings::{Domain, Entry, Field};
use marline_lab::link::{Fate, MakeModel, Packet, PacketModel, Time};

/// Its name in settings, and its parameters.
pub(crate) static ENTRY: Entry<MakeModel, Drx> = Entry {
    name: "drx",
    about: "Packets wait for the end of a cycle",
    parameters: &[&Field::new(
        "cycle",
        Domain::TIME,
        "The length of a cycle",
        |drx: &mut Drx| &mut drx.cycle,
    )],
    default: || Drx {
        cycle: Duration::from_millis(40),
    },
    make: |drx| Arc::new(move |_seed| Box::new(drx)),
};

/// A receiver that sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drx {
    cycle: Duration,
}

impl PacketModel for Drx {
    fn fate(&mut self, now: Time, _packet: &mut Packet) -> Fate {
        let cycle = (self.cycle.as_nanos() as u64).max(1);
        let cycles = now.as_nanos().div_ceil(cycle);
        Fate::Leaves(Time::from_nanos(cycles.saturating_mul(cycle)))
    }
}
