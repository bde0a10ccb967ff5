//! Models of links that a program adds to those of this crate.
//!
//! A [`PacketModel`] decides at the arrival of each packet what becomes of it. Under a name in [`MODELS`] it is a stage of any
//! link: `rate=7mbps, rtt=50ms, custom=NAME(key=value)`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use marline_settings::{Added, Registry};

use crate::{DropReason, Exit, Link, Packet, Seed, Time};

/// Makes a model from the seed of its random numbers.
pub type MakeModel = Arc<dyn Fn(Seed) -> Box<dyn PacketModel> + Send + Sync>;

/// Models by name; all of them are of programs.
pub const MODELS: Registry<MakeModel> = Registry::new("packet model", &[]).open_to(added);

/// The models that the program adds.
fn added() -> &'static Added<MakeModel> {
    static ADDED: Added<MakeModel> = Added::new();
    &ADDED
}

/// Decides what becomes of packets in one direction of a link.
///
/// Equal seeds and equal packets must give equal decisions: use no clock and no random numbers but those of the seed.
pub trait PacketModel: Send {
    /// The fate of `packet`, which arrives at `now`; times never decrease. The model may mark it
    /// ([`Packet::ecn`]) or damage it ([`Packet::corrupted`]).
    fn fate(&mut self, now: Time, packet: &mut Packet) -> Fate;
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves then; not before it has arrived.
    Leaves(Time),
    /// It is dropped at once.
    Dropped(DropReason),
}

/// A link whose packets fare as a [`PacketModel`] decides; they may overtake each other.
pub struct ModelLink<B> {
    model: Box<dyn PacketModel>,
    /// By the time when they leave, and the order of their arrival.
    exits: BTreeMap<(Time, u64), Exit<B>>,
    arrived: u64,
}

impl<B> ModelLink<B> {
    /// A link of `model`.
    pub const fn new(model: Box<dyn PacketModel>) -> Self {
        Self {
            model,
            exits: BTreeMap::new(),
            arrived: 0,
        }
    }
}

impl<B> fmt::Debug for ModelLink<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelLink")
            .field("waiting", &self.exits.len())
            .finish_non_exhaustive()
    }
}

impl<B: Send> Link<B> for ModelLink<B> {
    fn push(&mut self, now: Time, mut packet: Packet<B>) {
        let mut shown = Packet {
            size: packet.size,
            flow: packet.flow,
            hosts: packet.hosts,
            ecn: packet.ecn,
            corrupted: packet.corrupted,
            body: (),
        };
        let fate = self.model.fate(now, &mut shown);
        (packet.ecn, packet.corrupted) = (shown.ecn, shown.corrupted);
        let exit = match fate {
            Fate::Leaves(at) => Exit::arrived(at.max(now), packet),
            Fate::Dropped(reason) => Exit::dropped(now, packet, reason),
        };
        self.exits.insert((exit.at, self.arrived), exit);
        self.arrived += 1;
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        let first = self.exits.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn next_event(&self) -> Option<Time> {
        self.exits.first_key_value().map(|((at, _), _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marline_settings::Entry;

    use super::*;
    use crate::{Ecn, LinkSpec, conformance};

    /// Each second packet takes longer, each fifth is lost, and all are marked.
    struct Uneven(u64);

    impl PacketModel for Uneven {
        fn fate(&mut self, now: Time, packet: &mut Packet) -> Fate {
            self.0 += 1;
            packet.ecn = Ecn::Ce;
            match self.0 {
                number if number.is_multiple_of(5) => Fate::Dropped(DropReason::Loss),
                number if number.is_multiple_of(2) => Fate::Leaves(now + Duration::from_millis(30)),
                _ => Fate::Leaves(now + Duration::from_millis(10)),
            }
        }
    }

    static UNEVEN: Entry<MakeModel, ()> = Entry::plain("uneven", "Uneven delays", |()| {
        Arc::new(|_| Box::new(Uneven(0)))
    });

    #[test]
    fn a_model_is_a_link_as_any_other() {
        let link = || Box::new(ModelLink::new(Box::new(Uneven(0)))) as Box<dyn Link<_>>;
        conformance::check_link(link, &conformance::arrivals(1, 1000)).unwrap();
    }

    #[test]
    fn models_of_programs_are_stages_of_links() {
        assert!("rate=7mbps, custom=uneven".parse::<LinkSpec>().is_err());
        MODELS.add(&UNEVEN).unwrap();
        let spec: LinkSpec = "rtt=20ms, down.custom=uneven".parse().unwrap();
        assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
        assert_eq!(spec.up.custom, None);
        let error = "custom=uneven(depth=3, more=4), rtt=20ms".parse::<LinkSpec>();
        let error = error.unwrap_err().to_string();
        assert!(error.contains("depth"), "{error}");
        let mut media = spec.build::<()>(Seed::new(1)).unwrap();
        assert_eq!(media.len(), 1);
        let medium = &mut media[0];
        for at in [0, 1] {
            let now = Time::ZERO + Duration::from_millis(at);
            medium.push(now, 1, 0, Packet::new(1000, ()));
        }
        let end = Time::ZERO + Duration::from_secs(1);
        let times: Vec<_> = std::iter::from_fn(|| medium.pop(end))
            .map(|carried| carried.exit.at.as_nanos() / 1_000_000)
            .collect();
        assert_eq!(times, [20, 41]);
    }
}
