//! Received packets: duplicate detection and pending acknowledgments.

use marline_wire::PathId;
use marline_wire::frame::{Ack, EcnCounts, PathAck};

use crate::buffers::RangeSet;
use crate::limits::{LATE_PACKETS, MAX_RECEIVED_RANGES};
use crate::time::Instant;
use crate::tuple::EcnCodepoint;

/// The receiving half of a packet number space (RFC 9000, section 13.2).
#[derive(Debug, Default)]
pub(crate) struct Received {
    numbers: RangeSet,
    /// Lower bound of stored numbers; a packet below it counts as a duplicate.
    forgotten_below: u64,
    /// Number below which ranges are known to the peer and not repeated.
    report_from: u64,
    largest: Option<(u64, Instant)>,
    /// Largest number of an ack-eliciting packet.
    largest_eliciting: Option<u64>,
    /// Largest Acknowledged of the ACK frames so far.
    largest_reported: Option<u64>,
    /// Largest Acknowledged of the ACK frames that the peer has acknowledged.
    largest_confirmed: Option<u64>,
    /// Whether the next packet repeats an ACK frame.
    repeats: bool,
    ecn: EcnCounts,
    total: u64,
    /// Ack-eliciting packets since the last ACK frame, and the arrival time of the first.
    unacked: u64,
    oldest_unacked_at: Option<Instant>,
    /// Time by which an ACK frame is due.
    deadline: Option<Instant>,
}

impl Received {
    /// Whether `number` was received before, or is too old to check.
    pub(crate) fn is_duplicate(&self, number: u64) -> bool {
        number < self.forgotten_below || self.numbers.contains(number)
    }

    /// Number of stored ranges.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn largest(&self) -> Option<u64> {
        self.largest.map(|(number, _)| number)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Number of missing packets of the peer: those up to the largest, from 0 (RFC 9000, section 12.3), except the last
    /// [`LATE_PACKETS`] before it, which may be reordered. A packet that arrives later is no longer missing.
    pub(crate) fn missing(&self) -> u64 {
        let Some(largest) = self.largest() else {
            return 0;
        };
        let recent = largest
            .saturating_sub(LATE_PACKETS)
            .max(self.forgotten_below);
        let late = self.numbers.gaps(recent..largest);
        let late: u64 = late.map(|gap| gap.end - gap.start).sum();
        (largest + 1)
            .saturating_sub(self.total)
            .saturating_sub(late)
    }

    /// The largest number of an ack-eliciting packet.
    pub(crate) fn largest_eliciting(&self) -> Option<u64> {
        self.largest_eliciting
    }

    /// Largest Acknowledged of the ACK frames so far.
    pub(crate) fn largest_reported(&self) -> Option<u64> {
        self.largest_reported
    }

    /// The smallest missing number below the largest ack-eliciting one, at most `threshold` below
    /// the largest reported one.
    pub(crate) fn smallest_missing(&self, threshold: u64) -> Option<u64> {
        let until = self.largest_eliciting?;
        let from = self
            .largest_reported
            .map_or(0, |reported| reported.saturating_sub(threshold) + 1);
        if self.numbers.len() == 1 && self.numbers.min().is_some_and(|min| min <= from) {
            return None;
        }
        let from = from.max(self.forgotten_below);
        (from < until)
            .then(|| self.numbers.gaps(from..until).next())?
            .map(|gap| gap.start)
    }

    /// Ack-eliciting packets since the last ACK frame.
    pub(crate) fn unacked(&self) -> u64 {
        self.unacked
    }

    /// Arrival time of the oldest unacknowledged packet.
    pub(crate) fn oldest_unacked_at(&self) -> Option<Instant> {
        self.oldest_unacked_at
    }

    /// Records a packet that is not a duplicate.
    ///
    /// Returns whether it is out of order in the sense of RFC 9000, section 13.2.1: older than an
    /// ack-eliciting packet received before, or after a gap.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        number: u64,
        ack_eliciting: bool,
        ecn: Option<EcnCodepoint>,
    ) -> bool {
        let expected = self.largest.map_or(number, |(largest, _)| largest + 1);
        self.numbers.insert(number..number + 1);
        if self.numbers.len() > MAX_RECEIVED_RANGES
            && let Some(oldest) = self.numbers.pop_min()
        {
            self.forgotten_below = oldest.end;
        }
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        self.report_from = self.report_from.min(number);
        self.total += 1;
        match ecn {
            Some(EcnCodepoint::Ect0) => self.ecn.ect0 += 1,
            Some(EcnCodepoint::Ect1) => self.ecn.ect1 += 1,
            Some(EcnCodepoint::Ce) => self.ecn.ce += 1,
            None => {}
        }
        if !ack_eliciting {
            return false;
        }
        let out_of_order = number > expected
            || self
                .largest_eliciting
                .is_some_and(|largest| number < largest);
        self.largest_eliciting = self.largest_eliciting.max(Some(number));
        self.unacked += 1;
        self.oldest_unacked_at.get_or_insert(now);
        out_of_order
    }

    /// Schedules an ACK frame by `deadline`.
    pub(crate) fn acknowledge_by(&mut self, deadline: Instant) {
        self.deadline = Some(
            self.deadline
                .map_or(deadline, |earlier| earlier.min(deadline)),
        );
    }

    /// Time by which an ACK frame is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn is_ack_due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether an ACK frame would acknowledge an ack-eliciting packet for the first time.
    pub(crate) fn has_unacked(&self) -> bool {
        self.unacked > 0
    }

    /// Whether the next packet has an ACK frame.
    pub(crate) fn is_ack_wanted(&self) -> bool {
        self.has_unacked() || self.repeats
    }

    /// Lets the next packet repeat the ACK frame if the last ones may be lost: the peer has acknowledged none with the latest
    /// numbers. Without, it learns of nothing that it sent until another of its packets arrives, and its window may be full.
    pub(crate) fn repeat_ack(&mut self) {
        self.repeats = self.largest_reported > self.largest_confirmed;
    }

    /// Appends an ACK frame of at most `room` bytes, or a PATH_ACK frame for `path`; returns the largest
    /// number it acknowledges.
    pub(crate) fn write_ack(
        &mut self,
        now: Instant,
        path: Option<PathId>,
        delay_exponent: u8,
        room: usize,
        buf: &mut Vec<u8>,
    ) -> Option<u64> {
        let (largest, at) = self.largest?;
        let delay = now.saturating_since(at).as_micros() as u64 >> delay_exponent;
        let seen = self.ecn.ect0 + self.ecn.ect1 + self.ecn.ce > 0;
        let from = self.report_from;
        let ranges = self
            .numbers
            .iter()
            .rev()
            .take_while(|range| range.end > from);
        let ranges = ranges.map(|range| range.start..=range.end - 1);
        let ecn = seen.then_some(self.ecn);
        let written = match path {
            None => Ack::encode_bounded(ranges, delay, ecn, room, buf),
            Some(path) => PathAck::encode_bounded(path, ranges, delay, ecn, room, buf),
        };
        if written == 0 {
            return None;
        }
        self.largest_reported = Some(largest);
        self.unacked = 0;
        self.repeats = false;
        self.oldest_unacked_at = None;
        self.deadline = None;
        Some(largest)
    }

    /// Handles the acknowledgment of an ACK frame with ranges up to `largest`, which need not be
    /// repeated (RFC 9000, section 13.2.4). The numbers are kept for duplicate detection.
    pub(crate) fn on_ack_acked(&mut self, largest: u64) {
        self.report_from = self.report_from.max(largest);
        self.largest_confirmed = self.largest_confirmed.max(Some(largest));
    }
}

#[cfg(test)]
mod tests;
