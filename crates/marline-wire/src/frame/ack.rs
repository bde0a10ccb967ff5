//! ACK (RFC 9000, section 19.3).
//!
//! ```text
//! ACK Frame {                        ACK Range {           ECN Counts {
//!   Type (i) = 0x02..0x03,             Gap (i),              ECT0 Count (i),
//!   Largest Acknowledged (i),          ACK Range Length (i), ECT1 Count (i),
//!   ACK Delay (i),                   }                       ECN-CE Count (i),
//!   ACK Range Count (i),                                   }
//!   First ACK Range (i),
//!   ACK Range (..) ...,
//!   [ECN Counts (..)],
//! }
//! ```
//!
//! Ranges go from the largest packet number down. A length is a count of packets less one, a gap a
//! count of missing packets less one. Type 0x03 has ECN counts. PATH_ACK shares all but the type.

use std::ops::RangeInclusive;

use super::FrameErrorKind;
use crate::{Reader, varint};

/// Packets received with each ECN codepoint in one packet number space, since the start of the
/// connection (section 19.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// Packets marked ECT(0).
    pub ect0: u64,
    /// Packets marked ECT(1).
    pub ect1: u64,
    /// Packets marked CE (Congestion Experienced).
    pub ce: u64,
}

impl EcnCounts {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            ect0: reader.varint()?,
            ect1: reader.varint()?,
            ce: reader.varint()?,
        })
    }

    const fn size(&self) -> usize {
        varint::size(self.ect0) + varint::size(self.ect1) + varint::size(self.ce)
    }
}

/// Bit of a frame type with ECN counts, in ACK and PATH_ACK.
const ECN: u64 = 1;

/// An ACK frame: the packets received by its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Largest packet number received.
    pub largest: u64,
    /// ACK Delay as encoded on the wire: microseconds divided by 2^`ack_delay_exponent`, with the
    /// exponent of the frame's sender.
    pub delay: u64,
    /// ECN counts, if the sender reports them.
    pub ecn: Option<EcnCounts>,
    /// First ACK Range to the last ACK Range, encoded; validated by `decode`.
    ranges: &'a [u8],
}

impl<'a> Ack<'a> {
    /// The frame type without ECN counts.
    pub const TYPE: u64 = 0x02;
    /// The frame type with ECN counts.
    pub const TYPE_ECN: u64 = 0x03;

    /// Reads the fields after the frame type (in PATH_ACK, after the path ID) and checks every
    /// range. A range takes at least two bytes, so the work is bounded by the size of the packet.
    pub(super) fn decode(frame_type: u64, reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        const BELOW_ZERO: FrameErrorKind =
            FrameErrorKind::Invalid("acknowledges packet numbers below 0");
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let count = reader.varint()?;
        let mut ahead = *reader;
        let mut smallest = largest.checked_sub(ahead.varint()?).ok_or(BELOW_ZERO)?;
        for _ in 0..count {
            let (gap, len) = (ahead.varint()?, ahead.varint()?);
            smallest = smallest.checked_sub(gap + 2 + len).ok_or(BELOW_ZERO)?;
        }
        let ranges = reader.take(reader.len() - ahead.len())?;
        let has_ecn = frame_type & ECN != 0;
        let ecn = has_ecn.then(|| EcnCounts::decode(reader)).transpose()?;
        Ok(Self {
            largest,
            delay,
            ecn,
            ranges,
        })
    }

    /// The frame type, which depends on whether there are ECN counts.
    pub const fn frame_type(&self) -> u64 {
        frame_type(Self::TYPE, self.ecn)
    }

    /// The packet numbers received: ranges that neither overlap nor touch, largest first.
    #[inline]
    pub const fn ranges(&self) -> AckRanges<'a> {
        AckRanges {
            largest: Some(self.largest),
            smallest: 0,
            reader: Reader::new(self.ranges),
        }
    }

    /// Appends a frame that acknowledges all of `ranges`; see
    /// [`encode_bounded`](Self::encode_bounded). Returns the number of ranges.
    pub fn encode(
        ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
        delay: u64,
        ecn: Option<EcnCounts>,
        buf: &mut Vec<u8>,
    ) -> usize {
        Self::encode_bounded(ranges, delay, ecn, usize::MAX, buf)
    }

    /// Appends a frame of at most `max_len` bytes that acknowledges as many of `ranges` as fit,
    /// starting with the first. Returns the number of ranges written; 0 means that nothing was
    /// appended.
    ///
    /// `ranges` must not be empty, must descend, and must neither overlap nor touch. The iterator is
    /// cloned and traversed twice, because the range count precedes the ranges. `delay` is in units
    /// of this end's `ack_delay_exponent`, as in [`delay`](Self::delay).
    ///
    /// # Panics
    ///
    /// In debug builds, if `ranges` violates these conditions.
    #[inline]
    pub fn encode_bounded(
        ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
        delay: u64,
        ecn: Option<EcnCounts>,
        max_len: usize,
        buf: &mut Vec<u8>,
    ) -> usize {
        encode_after(
            &[frame_type(Self::TYPE, ecn)],
            ranges,
            delay,
            ecn,
            max_len,
            buf,
        )
    }
}

/// The frame type for a frame with or without `ecn`; `without` is the type without ECN counts.
pub(super) const fn frame_type(without: u64, ecn: Option<EcnCounts>) -> u64 {
    if ecn.is_some() {
        without | ECN
    } else {
        without
    }
}

/// As [`Ack::encode_bounded`], for a frame that starts with the integers of `head`.
#[inline]
pub(super) fn encode_after(
    head: &[u64],
    mut ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
    delay: u64,
    ecn: Option<EcnCounts>,
    max_len: usize,
    buf: &mut Vec<u8>,
) -> usize {
    let Some(first) = ranges.next() else {
        return 0;
    };
    let (largest, first_len) = (*first.end(), first.end() - first.start());

    let mut size = head.iter().map(|&value| varint::size(value)).sum::<usize>();
    size += varint::size(largest) + varint::size(delay) + varint::size(first_len);
    size += ecn.map_or(0, |ecn| ecn.size());
    if size + varint::size(0) > max_len {
        return 0;
    }
    let mut additional = 0;
    for (gap, len) in gaps(*first.start(), ranges.clone()) {
        size += varint::size(gap) + varint::size(len);
        if size + varint::size(additional + 1) > max_len {
            break;
        }
        additional += 1;
    }

    for &value in head {
        varint::encode(value, buf);
    }
    for value in [largest, delay, additional, first_len] {
        varint::encode(value, buf);
    }
    for (gap, len) in gaps(*first.start(), ranges).take(additional as usize) {
        varint::encode(gap, buf);
        varint::encode(len, buf);
    }
    if let Some(EcnCounts { ect0, ect1, ce }) = ecn {
        for count in [ect0, ect1, ce] {
            varint::encode(count, buf);
        }
    }
    additional as usize + 1
}

/// Gap and length of each range, as on the wire; `smallest` is the lowest number of the previous range.
fn gaps(
    mut smallest: u64,
    ranges: impl Iterator<Item = RangeInclusive<u64>>,
) -> impl Iterator<Item = (u64, u64)> {
    ranges.map(move |range| {
        debug_assert!(
            range.start() <= range.end() && smallest >= range.end().saturating_add(2),
            "ACK ranges must descend and must not touch"
        );
        let gap = smallest.wrapping_sub(*range.end()).wrapping_sub(2);
        smallest = *range.start();
        (gap, range.end().wrapping_sub(smallest))
    })
}

/// The ranges of an [`Ack`], largest first.
#[derive(Clone, Copy, Debug)]
pub struct AckRanges<'a> {
    /// The largest number of the next range, if it is known without reading its gap.
    largest: Option<u64>,
    /// The smallest number of the previous range.
    smallest: u64,
    reader: Reader<'a>,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let largest = match self.largest.take() {
            Some(largest) => largest,
            None => {
                let gap = self.reader.varint().ok()?;
                self.smallest.checked_sub(gap + 2)?
            }
        };
        let len = self.reader.varint().ok()?;
        self.smallest = largest.checked_sub(len)?;
        Some(self.smallest..=largest)
    }
}

impl std::iter::FusedIterator for AckRanges<'_> {}

#[cfg(test)]
mod tests;
