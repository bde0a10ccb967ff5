//! What links see of TCP flows whose ends are not ours.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;

use marline_sim::fabric::{Fabric, Node, Passage, Verdict};

use super::IpPacket;
use super::segment::Segment;
use crate::workload::background::TcpCount;

/// A flow to be counted: the way its bytes go.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) sender: (Node, SocketAddrV4),
    pub(super) receiver: (Node, SocketAddrV4),
    pub(super) count: TcpCount,
}

/// Has all of `flows` counted as they pass.
pub(super) fn count(fabric: &mut Fabric<IpPacket>, flows: Vec<Watched>) {
    if flows.is_empty() {
        return;
    }
    let mut flows: HashMap<_, _> = flows
        .into_iter()
        .map(|flow| {
            let way = (flow.sender.1, flow.receiver.1);
            (way, (flow, Arrived::default()))
        })
        .collect();
    fabric.tap(Box::new(move |passage| {
        let Some(segment) = Segment::of(passage.packet.body.bytes()) else {
            return;
        };
        if let Some((flow, arrived)) = flows.get_mut(&(segment.from, segment.to)) {
            see(flow, arrived, passage, &segment);
        }
    }));
}

fn see(flow: &Watched, arrived: &mut Arrived, passage: &Passage<'_, IpPacket>, segment: &Segment) {
    let TcpCount { received, packets } = &flow.count;
    // What says only how far the other direction is, is no part of the flow.
    let counts = segment.payload > 0;
    match passage.verdict {
        Verdict::Entered if counts && passage.from == flow.sender.0 => packets.on_sent(),
        Verdict::Dropped(_) if counts => packets.on_lost(),
        Verdict::Left if passage.to == Some(flow.receiver.0) => {
            // The receiver drops what does not sum up.
            if passage.packet.corrupted.is_none() {
                received.add(arrived.add(segment));
            } else if counts {
                packets.on_lost();
            }
        }
        Verdict::Entered | Verdict::Dropped(_) | Verdict::Left => {}
    }
}

/// The bytes of a connection that have arrived. Places count from the first byte, beyond the 32 bits of
/// sequence numbers.
#[derive(Debug, Default)]
struct Arrived {
    /// The sequence number of the first byte.
    first: u32,
    /// All before this has arrived: as much as an application could have read.
    next: u64,
    /// What has arrived beyond a gap: ends by beginnings. The receiver's window limits it.
    beyond: BTreeMap<u64, u64>,
}

impl Arrived {
    /// A segment arrives; how many more bytes can be read.
    fn add(&mut self, segment: &Segment) -> usize {
        if segment.is_syn {
            *self = Self {
                first: segment.number.wrapping_add(1),
                ..Self::default()
            };
            return 0;
        }
        // Segments are less than 2^31 bytes from what comes next, before or after.
        let expected = self.first.wrapping_add(self.next as u32);
        let distance = segment.number.wrapping_sub(expected).cast_signed();
        let Some(begin) = self.next.checked_add_signed(distance.into()) else {
            return 0;
        };
        let end = begin + u64::from(segment.payload);
        let before = self.next;
        if begin > self.next {
            let known = self.beyond.entry(begin).or_default();
            *known = end.max(*known);
            return 0;
        }
        self.next = self.next.max(end);
        while let Some(entry) = self.beyond.first_entry()
            && *entry.key() <= self.next
        {
            self.next = self.next.max(entry.remove());
        }
        (self.next - before) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u32, payload: u32) -> Segment {
        let nobody = SocketAddrV4::new([0, 0, 0, 0].into(), 0);
        Segment {
            from: nobody,
            to: nobody,
            number,
            is_syn: false,
            payload,
        }
    }

    fn opened(number: u32) -> Arrived {
        let mut arrived = Arrived::default();
        let syn = Segment {
            is_syn: true,
            ..segment(number, 0)
        };
        assert_eq!(arrived.add(&syn), 0);
        arrived
    }

    #[test]
    fn bytes_count_once_and_in_order() {
        let mut arrived = opened(99);
        assert_eq!(arrived.add(&segment(100, 10)), 10);
        assert_eq!(arrived.add(&segment(100, 10)), 0, "again");
        assert_eq!(arrived.add(&segment(120, 10)), 0, "beyond a gap");
        assert_eq!(arrived.add(&segment(140, 10)), 0, "beyond two");
        assert_eq!(arrived.add(&segment(120, 5)), 0, "a part again");
        assert_eq!(arrived.add(&segment(105, 15)), 20, "a part is new");
        assert_eq!(arrived.add(&segment(130, 10)), 20);
        assert_eq!(arrived.add(&segment(150, 0)), 0, "nothing in it");
        assert!(arrived.beyond.is_empty());
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut arrived = opened(u32::MAX - 5);
        assert_eq!(arrived.add(&segment(u32::MAX - 4, 10)), 10);
        assert_eq!(arrived.add(&segment(10, 10)), 0);
        assert_eq!(arrived.add(&segment(5, 5)), 15);
        assert_eq!(arrived.add(&segment(u32::MAX - 4, 25)), 0);
        let mut far = opened(0);
        let step = 1 << 30;
        for turn in 0..9_u32 {
            let number = turn.wrapping_mul(step).wrapping_add(1);
            assert_eq!(far.add(&segment(number, step)), step as usize);
        }
        assert_eq!(far.next, 9 << 30);
    }

    #[test]
    fn a_syn_restarts_sequence_numbers() {
        let mut arrived = opened(7);
        assert_eq!(arrived.add(&segment(8, 10)), 10);
        let syn = Segment {
            is_syn: true,
            ..segment(5000, 0)
        };
        assert_eq!(arrived.add(&syn), 0);
        assert_eq!(arrived.add(&segment(5001, 10)), 10);
        // Before its beginning there is nothing.
        assert_eq!(arrived.add(&segment(4000, 10)), 0);
    }
}
