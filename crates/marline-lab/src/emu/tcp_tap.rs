//! Counts the TCP flows of other programs where they pass the links.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;

use marline_sim::fabric::{Fabric, Node, PacketEvent, Verdict};

use super::IpPacket;
use super::segment::Segment;
use crate::workload::background::TcpCount;

/// A host, and an address and port of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostSocket {
    pub(super) node: Node,
    pub(super) address: SocketAddrV4,
}

/// A flow to be counted, from its sender to its receiver.
#[derive(Clone, Debug)]
pub(super) struct WatchedFlow {
    pub(super) sender: HostSocket,
    pub(super) receiver: HostSocket,
    pub(super) count: TcpCount,
}

/// Counts the packets and bytes of `flows` on the links of `fabric`.
pub(super) fn count(fabric: &mut Fabric<IpPacket>, flows: Vec<WatchedFlow>) {
    if flows.is_empty() {
        return;
    }
    let mut flows: HashMap<_, _> = flows
        .into_iter()
        .map(|flow| {
            let ends = (flow.sender.address, flow.receiver.address);
            (ends, (flow, Arrived::default()))
        })
        .collect();
    fabric.tap(Box::new(move |passage| {
        let Some(segment) = Segment::of(passage.packet.body.bytes()) else {
            return;
        };
        if let Some((flow, arrived)) = flows.get_mut(&(segment.from, segment.to)) {
            observe(flow, arrived, passage, &segment);
        }
    }));
}

fn observe(
    flow: &WatchedFlow,
    arrived: &mut Arrived,
    passage: &PacketEvent<'_, IpPacket>,
    segment: &Segment,
) {
    let TcpCount { received, packets } = &flow.count;
    // Segments without payload only acknowledge the other direction.
    let counts = segment.payload > 0;
    match passage.verdict {
        Verdict::Entered if counts && passage.from == flow.sender.node => packets.on_sent(),
        Verdict::Dropped(_) if counts => packets.on_lost(),
        Verdict::Left if passage.to == Some(flow.receiver.node) => {
            // The receiver drops corrupted segments by their checksum.
            if passage.packet.corrupted.is_none() {
                received.add(arrived.add(segment));
            } else if counts {
                packets.on_lost();
            }
        }
        Verdict::Entered | Verdict::Dropped(_) | Verdict::Left => {}
    }
}

/// The bytes of a connection that have arrived. Offsets count from the first byte, and do not wrap as
/// sequence numbers do.
#[derive(Debug, Default)]
struct Arrived {
    /// The sequence number of the first byte.
    first: u32,
    /// All bytes before this offset have arrived: an application could have read them.
    next: u64,
    /// Ranges that arrived beyond a gap: their ends by their starts. The receiver's window limits their
    /// number.
    beyond: BTreeMap<u64, u64>,
}

impl Arrived {
    /// Records a segment, and returns by how many bytes the readable data grows.
    fn add(&mut self, segment: &Segment) -> usize {
        if segment.is_syn {
            *self = Self {
                first: segment.number.wrapping_add(1),
                ..Self::default()
            };
            return 0;
        }
        // A segment is less than 2^31 bytes before or after the next expected byte.
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
        assert_eq!(arrived.add(&segment(100, 10)), 0, "a retransmission");
        assert_eq!(arrived.add(&segment(120, 10)), 0, "beyond a gap");
        assert_eq!(arrived.add(&segment(140, 10)), 0, "beyond two gaps");
        assert_eq!(arrived.add(&segment(120, 5)), 0, "a part of it again");
        assert_eq!(
            arrived.add(&segment(105, 15)),
            20,
            "only a part of it is new"
        );
        assert_eq!(arrived.add(&segment(130, 10)), 20);
        assert_eq!(arrived.add(&segment(150, 0)), 0, "no payload");
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
        // Bytes before the first one are ignored.
        assert_eq!(arrived.add(&segment(4000, 10)), 0);
    }
}
