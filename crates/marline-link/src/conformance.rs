//! Conformance checks for the contracts of [`Link`] and [`Medium`].
//!
//! Feature `testing`. Usage for a custom model:
//!
//! ```
//! use marline_link::{Delay, conformance};
//! use std::time::Duration;
//!
//! let link = || Box::new(Delay::new(Duration::from_millis(10))) as Box<_>;
//! conformance::check_link(link, &conformance::arrivals(1, 1000))?;
//! # Ok::<(), String>(())
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;

use crate::{Carried, Exit, Link, Medium, Packet, Seed, Station, Time};

#[cfg(test)]
mod tests;

/// The arrival of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time since the previous arrival.
    pub gap: Duration,
    /// Size in bytes.
    pub size: u32,
    /// Flow hash; see [`Packet::flow`].
    pub flow: u64,
}

/// `count` random arrivals: bursts, steady flows and long gaps, with small and large packets.
pub fn arrivals(seed: u64, count: usize) -> Vec<Arrival> {
    let mut rng = Seed::new(seed).of("arrivals").rng();
    (0..count)
        .map(|_| {
            let bits = rng.next_u64();
            let spread = bits >> 32;
            let gap = match bits % 16 {
                0..8 => 0,
                8..12 => spread % 1_000_000,
                12..15 => spread % 30_000_000,
                _ => spread % 2_000_000_000,
            };
            Arrival {
                gap: Duration::from_nanos(gap),
                size: if bits & 16 == 0 {
                    1500
                } else {
                    40 + (bits >> 8) as u32 % 1461
                },
                flow: (bits >> 24) % 4,
            }
        })
        .collect()
}

/// Checks a link. `make` must construct the same link with the same seed each time.
///
/// - Every packet exits exactly once and unchanged, except that duplicates may follow.
/// - Exits are in time order, and none precedes the arrival of its packet.
/// - The exits are the same whether the link is polled at every event, only after arrivals, or once
///   at the end.
/// - Two links created with the same seed give the same exits.
/// - After [`pop`](Link::pop) returned `None`, no event lies in the past; the number of events is
///   finite.
///
/// # Errors
///
/// A description of the violation.
pub fn check_link(
    make: impl Fn() -> Box<dyn Link<u64>>,
    arrivals: &[Arrival],
) -> Result<(), String> {
    check(|| Box::new(OneWay(make())), arrivals)
}

/// Checks a medium as [`check_link`] does, with packets from every station to every other. Exits of
/// different stations at the same time may come in any order.
///
/// # Errors
///
/// A description of the violation.
pub fn check_medium(
    make: impl Fn() -> Box<dyn Medium<u64>>,
    arrivals: &[Arrival],
) -> Result<(), String> {
    check(make, arrivals)
}

fn check(make: impl Fn() -> Box<dyn Medium<u64>>, arrivals: &[Arrival]) -> Result<(), String> {
    let prompt = run(&mut *make(), arrivals, Polling::EveryEvent)?;
    conserves(&prompt, arrivals)?;
    for (polling, what) in [
        (
            Polling::EveryEvent,
            "a second instance gives different exits",
        ),
        (
            Polling::AfterPush,
            "polled only after each packet, it gives different exits",
        ),
        (
            Polling::AtTheEnd,
            "polled only at the end, it gives different exits",
        ),
    ] {
        let other = run(&mut *make(), arrivals, polling)?;
        if let Some(index) = (0..prompt.exits.len().max(other.exits.len()))
            .find(|index| prompt.exits.get(*index) != other.exits.get(*index))
        {
            let (expected, actual) = (prompt.exits.get(index), other.exits.get(index));
            return Err(format!(
                "{what}: exit {index} is {actual:?}, not {expected:?}"
            ));
        }
    }
    Ok(())
}

/// The polling of the medium in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Polling {
    EveryEvent,
    AfterPush,
    AtTheEnd,
}

struct Outcome {
    exits: Vec<Carried<u64>>,
    /// The packets pushed, by index.
    pushed: Vec<Pushed>,
}

struct Pushed {
    at: Time,
    from: Station,
    to: Station,
}

fn run(
    medium: &mut dyn Medium<u64>,
    arrivals: &[Arrival],
    polling: Polling,
) -> Result<Outcome, String> {
    let stations = medium.stations();
    let mut outcome = Outcome {
        exits: Vec::new(),
        pushed: Vec::new(),
    };
    let mut now = Time::ZERO;
    // Upper bound of steps, for links that have events without packets, such as radios every millisecond.
    let mut steps = 1_000_000 + 1000 * arrivals.len();
    for (index, arrival) in arrivals.iter().enumerate() {
        let next = now + arrival.gap;
        if polling == Polling::EveryEvent {
            advance(medium, next, &mut steps, &mut outcome.exits)?;
        }
        now = next;
        // A link is tested as a medium of one station that sends to itself.
        let flow = arrival.flow as usize;
        let from = flow % stations;
        let hops = (flow / stations)
            .checked_rem(stations - 1)
            .map_or(0, |hops| 1 + hops);
        let to = (from + hops) % stations;
        let mut packet = Packet::new(arrival.size, index as u64);
        packet.flow = arrival.flow;
        medium.push(now, from, to, packet);
        outcome.pushed.push(Pushed { at: now, from, to });
        if polling != Polling::AtTheEnd {
            drain(medium, now, &mut outcome.exits)?;
        }
    }
    match polling {
        Polling::EveryEvent => advance(medium, Time::MAX, &mut steps, &mut outcome.exits)?,
        // Later than any packet in transit, without polling before.
        _ => drain(
            medium,
            now + Duration::from_secs(100_000),
            &mut outcome.exits,
        )?,
    }
    if let Some(pair) = outcome
        .exits
        .windows(2)
        .find(|pair| pair[1].exit.at < pair[0].exit.at)
    {
        return Err(format!("{:?} follows {:?}", pair[1], pair[0]));
    }
    outcome
        .exits
        .sort_by_key(|carried| (carried.exit.at, carried.from));
    Ok(outcome)
}

/// Polls at every event up to `until`.
fn advance(
    medium: &mut dyn Medium<u64>,
    until: Time,
    steps: &mut usize,
    exits: &mut Vec<Carried<u64>>,
) -> Result<(), String> {
    while let Some(due) = medium.next_event().filter(|due| *due <= until) {
        *steps = steps
            .checked_sub(1)
            .ok_or_else(|| format!("events do not end; the next is at {due:?}"))?;
        drain(medium, due, exits)?;
    }
    Ok(())
}

/// Pops everything due at `now`.
fn drain(
    medium: &mut dyn Medium<u64>,
    now: Time,
    exits: &mut Vec<Carried<u64>>,
) -> Result<(), String> {
    while let Some(carried) = medium.pop(now) {
        if carried.exit.at > now {
            return Err(format!("at {now:?} it returned a later exit: {carried:?}"));
        }
        exits.push(carried);
    }
    match medium.next_event() {
        Some(due) if due <= now => Err(format!(
            "at {now:?} it has no exits, but an event is due at {due:?}"
        )),
        _ => Ok(()),
    }
}

fn conserves(outcome: &Outcome, arrivals: &[Arrival]) -> Result<(), String> {
    let mut seen = BTreeMap::<u64, usize>::new();
    for carried in &outcome.exits {
        let Exit { at, packet, .. } = &carried.exit;
        let index = packet.body as usize;
        let (Some(arrival), Some(pushed)) = (arrivals.get(index), outcome.pushed.get(index)) else {
            return Err(format!("no packet was pushed for {carried:?}"));
        };
        if (packet.size, packet.flow) != (arrival.size, arrival.flow) {
            return Err(format!("{arrival:?} became {packet:?}"));
        }
        if (carried.from, carried.to) != (pushed.from, pushed.to) {
            return Err(format!(
                "a packet from {} to {} was carried elsewhere: {carried:?}",
                pushed.from, pushed.to
            ));
        }
        if *at < pushed.at {
            return Err(format!(
                "{carried:?} left before it arrived, at {:?}",
                pushed.at
            ));
        }
        *seen.entry(packet.body).or_default() += 1;
    }
    match (0..arrivals.len() as u64).find(|index| !seen.contains_key(index)) {
        Some(index) => Err(format!("packet {index} never left")),
        None => Ok(()),
    }
}

/// A link as a medium of one station.
struct OneWay(Box<dyn Link<u64>>);

impl Medium<u64> for OneWay {
    fn stations(&self) -> usize {
        1
    }

    fn push(&mut self, now: Time, _from: Station, _to: Station, packet: Packet<u64>) {
        self.0.push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Carried<u64>> {
        let exit = self.0.pop(now)?;
        Some(Carried {
            from: 0,
            to: 0,
            exit,
        })
    }

    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }

    fn queued_bytes(&self, _from: Station) -> u64 {
        self.0.queued_bytes()
    }
}
