//! Sizes, intervals, retransmissions and the first round trip of a flow: running sums, which flows of one packet, or of one in
//! each direction, do without.

use crate::decode::{TcpFields, flags};
use crate::inspect::{End, other};

/// Time after a gap within which its segment counts as reordered, not retransmitted, if no round-trip time is known: that of
/// Wireshark.
const REORDERING_NS: u64 = 3_000_000;

/// A packet to be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) sender: End,
    pub(crate) time_ns: u64,
    /// Length of the packet of IP.
    pub(crate) ip_bytes: u64,
    pub(crate) payload_bytes: u64,
    /// `None` for UDP and for fragments without a header.
    pub(crate) tcp: Option<TcpFields>,
}

/// The counts of an end before a packet, as its flow counts it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) flags: u8,
    /// The sequence number of its SYN, if it is among these packets.
    pub(crate) syn: Option<u32>,
}

/// The state of a flow before a packet, or at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    pub(crate) sent: [Before; 2],
    /// The end that sent the first packet.
    pub(crate) opener: End,
    /// The times of the first and the last packet.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

/// The measures of a flow. Nothing is kept until an end sends its second packet: those of one packet of each end follow from the
/// counts of the flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measures(Option<Box<Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    directions: [Direction; 2],
    /// Time of the opener's first packet after the answer, 0 before.
    confirmed_ns: u64,
    /// Whether the first packet, or the answer, was repeated: it is then unknown which one the next one answers.
    is_ambiguous: bool,
}

/// The packets that one end has sent.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    first_ns: u64,
    last_ns: u64,
    min_interval_ns: u64,
    max_interval_ns: u64,
    /// Sum of the squares of intervals, in ns².
    interval_squares: f64,
    /// Sum of the squares of lengths.
    size_squares: u64,
    min_bytes: u32,
    max_bytes: u32,
    /// Segments with PSH, with RST.
    psh: u32,
    rst: u32,
    retransmissions: u32,
    /// The sequence number after the highest one seen, if any.
    next: Option<u32>,
    gap: Gap,
}

/// The latest skipped range of sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    from: u32,
    to: u32,
    since_ns: u64,
}

/// Smallest, largest, mean, and deviation of a number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a sample: the divisor is the number of values less one. 0 for one value.
    pub deviation: f64,
}

impl Spread {
    /// The spread of `count` values with these sums.
    fn of(count: u64, sum: f64, squares: f64, min: f64, max: f64) -> Option<Self> {
        let n = match count {
            0 => return None,
            count => count as f64,
        };
        let mean = sum / n;
        // Rounding may leave a value slightly below zero.
        let variance = (squares - sum * mean).max(0.0) / (n - 1.0).max(1.0);
        Some(Self {
            min,
            max,
            mean,
            // For equal values rounding may leave a value slightly above zero.
            deviation: if min == max { 0.0 } else { variance.sqrt() },
        })
    }

    fn scaled(self, factor: f64) -> Self {
        Self {
            min: self.min * factor,
            max: self.max * factor,
            mean: self.mean * factor,
            deviation: self.deviation * factor,
        }
    }
}

/// The measures of one end's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Bytes of packets of IP; `None` without packets.
    pub sizes: Option<Spread>,
    /// Seconds between packets; `None` for fewer than two.
    pub intervals_s: Option<Spread>,
    /// Segments of TCP with PSH.
    pub psh: u64,
    /// Segments of TCP with RST.
    pub rst: u64,
    /// Retransmitted segments of TCP.
    pub retransmissions: u64,
}

/// The round trip that opened a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    /// From the first packet to the answer.
    pub(crate) answer_ns: Option<u64>,
    /// From the answer to the next packet of the end that opened it.
    pub(crate) confirmation_ns: Option<u64>,
}

/// Whether sequence number `a` is before `b`.
const fn is_before(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).cast_signed() > 0
}

/// Increments a count of 32 bits, which saturates.
fn count_one(count: &mut u32) {
    *count = count.saturating_add(1);
}

impl Measures {
    /// Whether a packet of an end that has sent `packets` needs to be measured.
    #[inline]
    pub(crate) const fn is_measured(&self, packets: u64) -> bool {
        self.0.is_some() || packets > 0
    }

    /// Measures a packet.
    pub(crate) fn on_packet(&mut self, sample: &Sample, past: &Past) {
        self.0
            .get_or_insert_with(|| Box::new(Kept::after(past)))
            .on_packet(sample, past);
    }

    /// The measures of an end that has sent `sent`.
    pub(crate) fn of(&self, end: End, sent: &Before) -> Measured {
        match &self.0 {
            Some(kept) => kept.directions[end].measured(sent),
            None if sent.packets == 0 => Measured::default(),
            None => Direction::after(sent, 0).measured(sent),
        }
    }

    /// The round trip that opened the flow. Over TCP its packets are the SYN, its answer, and the ACK; otherwise the first ones.
    pub(crate) fn round_trip(&self, past: &Past, is_tcp: bool) -> RoundTrip {
        let Past { sent, opener, .. } = past;
        let answers = &sent[other(*opener)];
        let is_opened = match is_tcp {
            // The answer to a SYN is a SYN with ACK, or an RST.
            true => sent[*opener].syn.is_some() && answers.flags & (flags::SYN | flags::RST) != 0,
            false => true,
        };
        if !is_opened || answers.packets == 0 {
            return RoundTrip::default();
        }
        let Some(kept) = &self.0 else {
            return RoundTrip {
                answer_ns: Some(past.last_ns.saturating_sub(past.first_ns)),
                confirmation_ns: None,
            };
        };
        if is_tcp && kept.is_ambiguous {
            return RoundTrip::default();
        }
        let [opened_ns, answered_ns] =
            [*opener, other(*opener)].map(|end| kept.directions[end].first_ns);
        let is_confirmed = is_tcp && kept.confirmed_ns > 0;
        RoundTrip {
            answer_ns: Some(answered_ns.saturating_sub(opened_ns)),
            confirmation_ns: is_confirmed.then(|| kept.confirmed_ns.saturating_sub(answered_ns)),
        }
    }
}

impl Kept {
    /// The state after at most one packet of each end.
    fn after(past: &Past) -> Self {
        let mut directions = [Direction::default(); 2];
        for (end, direction) in directions.iter_mut().enumerate() {
            if past.sent[end].packets > 0 {
                let is_first = end == past.opener;
                let time_ns = if is_first {
                    past.first_ns
                } else {
                    past.last_ns
                };
                *direction = Direction::after(&past.sent[end], time_ns);
            }
        }
        Self {
            directions,
            confirmed_ns: 0,
            is_ambiguous: false,
        }
    }

    fn on_packet(&mut self, sample: &Sample, past: &Past) {
        let (before, opener) = (&past.sent, past.opener);
        let is_syn = sample.tcp.is_some_and(|tcp| tcp.flags & flags::SYN != 0);
        if is_syn && before[sample.sender].packets > 0 {
            self.is_ambiguous = true;
        }
        let is_answered = before[other(opener)].packets > 0;
        if self.confirmed_ns == 0 && sample.sender == opener && is_answered && !is_syn {
            self.confirmed_ns = sample.time_ns;
        }
        let reordering_ns = match self.confirmed_ns {
            0 => REORDERING_NS,
            confirmed_ns => {
                // A loss takes a round trip to repair, which may be shorter than the first one.
                confirmed_ns.saturating_sub(self.directions[opener].first_ns) / 2
            }
        };
        let direction = &mut self.directions[sample.sender];
        if before[sample.sender].packets == 0 {
            *direction = Direction::begun(sample);
        } else {
            direction.on_packet(sample, before[sample.sender].packets);
        }
        if let Some(tcp) = sample.tcp {
            direction.on_tcp(tcp, sample, reordering_ns);
        }
    }
}

impl Direction {
    /// The state after one packet, which `before` counts.
    fn after(before: &Before, time_ns: u64) -> Self {
        let bytes = u32::try_from(before.bytes).unwrap_or(u32::MAX);
        let has = |flag| u32::from(before.flags & flag != 0);
        // The sequence number of a single packet is known if it is a SYN.
        let next = before.syn;
        Self {
            first_ns: time_ns,
            last_ns: time_ns,
            size_squares: before.bytes.saturating_mul(before.bytes),
            min_bytes: bytes,
            max_bytes: bytes,
            psh: has(flags::PSH),
            rst: has(flags::RST),
            next: next.map(|syn| {
                syn.wrapping_add(1)
                    .wrapping_add(before.payload_bytes as u32)
            }),
            ..Self::default()
        }
    }

    /// The state at the first packet.
    fn begun(sample: &Sample) -> Self {
        let bytes = u32::try_from(sample.ip_bytes).unwrap_or(u32::MAX);
        Self {
            first_ns: sample.time_ns,
            last_ns: sample.time_ns,
            size_squares: sample.ip_bytes.saturating_mul(sample.ip_bytes),
            min_bytes: bytes,
            max_bytes: bytes,
            ..Self::default()
        }
    }

    /// Adds a further packet, after `packets`.
    #[inline]
    fn on_packet(&mut self, sample: &Sample, packets: u64) {
        let bytes = u32::try_from(sample.ip_bytes).unwrap_or(u32::MAX);
        self.min_bytes = self.min_bytes.min(bytes);
        self.max_bytes = self.max_bytes.max(bytes);
        let square = sample.ip_bytes.saturating_mul(sample.ip_bytes);
        self.size_squares = self.size_squares.saturating_add(square);
        // A packet with an earlier time than the previous one is considered simultaneous.
        let interval_ns = sample.time_ns.saturating_sub(self.last_ns);
        self.last_ns += interval_ns;
        if packets == 1 {
            self.min_interval_ns = interval_ns;
        }
        self.min_interval_ns = self.min_interval_ns.min(interval_ns);
        self.max_interval_ns = self.max_interval_ns.max(interval_ns);
        let interval = interval_ns as f64;
        self.interval_squares += interval * interval;
    }

    #[inline]
    fn on_tcp(&mut self, tcp: TcpFields, sample: &Sample, reordering_ns: u64) {
        if tcp.flags & flags::PSH != 0 {
            count_one(&mut self.psh);
        }
        if tcp.flags & flags::RST != 0 {
            // Its sequence number is whatever the other end expects.
            count_one(&mut self.rst);
            return;
        }
        // SYN and FIN have a sequence number each.
        let is_one = |flag| u32::from(tcp.flags & flag != 0);
        let length = sample.payload_bytes as u32 + is_one(flags::SYN) + is_one(flags::FIN);
        if length == 0 {
            return;
        }
        let first = tcp.sequence;
        let after = first.wrapping_add(length);
        let Some(next) = self.next else {
            self.next = Some(after);
            return;
        };
        if !is_before(first, next) {
            if first != next {
                self.gap = Gap {
                    from: next,
                    to: first,
                    since_ns: sample.time_ns,
                };
            }
            self.next = Some(after);
            return;
        }
        if is_before(next, after) {
            self.next = Some(after);
        }
        let has_no_flags = tcp.flags & (flags::SYN | flags::FIN) == 0;
        let is_keep_alive = length == 1 && has_no_flags && after == next;
        if !is_keep_alive && !self.is_reordered(first, after, sample.time_ns, reordering_ns) {
            count_one(&mut self.retransmissions);
        }
    }

    /// Whether a segment was reordered: it lies in the latest gap, and fills it before its loss can have been repaired.
    fn is_reordered(&mut self, first: u32, after: u32, time_ns: u64, reordering_ns: u64) -> bool {
        let Gap { from, to, since_ns } = self.gap;
        let is_within = !is_before(first, from) && is_before(first, to) && !is_before(to, after);
        if !is_within {
            return false;
        }
        // The filled part is no longer a gap: of the rest, the part behind is kept.
        self.gap.from = after;
        time_ns.saturating_sub(since_ns) < reordering_ns
    }

    fn measured(&self, sent: &Before) -> Measured {
        let sizes = Spread::of(
            sent.packets,
            sent.bytes as f64,
            self.size_squares as f64,
            self.min_bytes.into(),
            self.max_bytes.into(),
        );
        let intervals = Spread::of(
            sent.packets.saturating_sub(1),
            self.last_ns.saturating_sub(self.first_ns) as f64,
            self.interval_squares,
            self.min_interval_ns as f64,
            self.max_interval_ns as f64,
        );
        Measured {
            sizes,
            intervals_s: intervals.map(|intervals| intervals.scaled(1e-9)),
            psh: self.psh.into(),
            rst: self.rst.into(),
            retransmissions: self.retransmissions.into(),
        }
    }
}

#[cfg(test)]
mod tests;
