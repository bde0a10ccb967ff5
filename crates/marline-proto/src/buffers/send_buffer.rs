//! Written bytes, kept until they are acknowledged.

use super::RangeSet;
use bytes::{Bytes, BytesMut};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Size of the first chunk for small writes, in bytes.
const FIRST_CHUNK: usize = 256;
/// Chunks double up to this size, in bytes: few allocations, while one lost packet pins little memory.
const LARGEST_CHUNK: usize = 16 * 1024;
/// Maximum length of writes that are copied, in bytes: below it a copy costs less than the
/// bookkeeping of a chunk.
const COPY_BELOW: usize = 128;

/// Bytes the application wrote, kept until they are acknowledged.
///
/// Offsets count from the first byte ever written. Every byte is unsent, in flight, lost (due
/// again) or acknowledged; bytes before the first unacknowledged one are freed.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    /// Finished chunks, oldest first, before `tail`.
    chunks: VecDeque<Chunk>,
    /// Small writes; ends at `end`.
    tail: BytesMut,
    /// Offset below which all bytes are acknowledged.
    base: u64,
    /// Offset from which on no byte was sent.
    unsent: u64,
    /// Number of bytes written in all.
    end: u64,
    /// Acknowledged ranges above `base`.
    acked: RangeSet,
    /// Lost ranges to be retransmitted.
    lost: RangeSet,
    /// Ranges in flight twice: lost only if both copies are.
    copied: RangeSet,
    /// End of the last read: reads are mostly sequential.
    last_read: Cell<usize>,
}

#[derive(Debug)]
struct Chunk {
    offset: u64,
    bytes: Bytes,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl SendBuffer {
    /// An empty buffer without allocations.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Appends `bytes`, without copying unless they are short.
    pub(crate) fn write(&mut self, bytes: Bytes) {
        if bytes.len() < COPY_BELOW {
            return self.write_slice(&bytes);
        }
        self.finish_tail();
        let offset = self.end;
        self.end += bytes.len() as u64;
        // Most streams have a single chunk.
        self.chunks
            .reserve_exact(usize::from(self.chunks.is_empty()));
        self.chunks.push_back(Chunk { offset, bytes });
    }

    /// Appends a copy of `data`; many small writes share a chunk.
    pub(crate) fn write_slice(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let room = self.tail.capacity() - self.tail.len();
            if room == 0 {
                self.grow(data.len());
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            self.tail.extend_from_slice(now);
            self.end += now.len() as u64;
            data = later;
        }
    }

    /// Replaces a full tail.
    fn grow(&mut self, wanted: usize) {
        let held = usize::try_from(self.unacked()).unwrap_or(LARGEST_CHUNK);
        self.finish_tail();
        let size = wanted.max(held).clamp(FIRST_CHUNK, LARGEST_CHUNK);
        self.tail = BytesMut::with_capacity(size);
    }

    /// Turns the content of the tail into a chunk; the tail keeps its spare capacity.
    fn finish_tail(&mut self) {
        if !self.tail.is_empty() {
            let offset = self.tail_offset();
            let bytes = self.tail.split().freeze();
            self.chunks.push_back(Chunk { offset, bytes });
        }
    }

    fn tail_offset(&self) -> u64 {
        self.end - self.tail.len() as u64
    }

    /// Bytes written so far: the offset of the next byte to be written.
    pub(crate) fn offset_end(&self) -> u64 {
        self.end
    }

    /// Offset of the first byte that was never sent.
    pub(crate) fn offset_unsent(&self) -> u64 {
        self.unsent
    }

    /// Bytes that were never sent.
    pub(crate) fn len_unsent(&self) -> u64 {
        self.end - self.unsent
    }

    /// Bytes from the first unacknowledged one to the end, for back-pressure.
    pub(crate) fn unacked(&self) -> u64 {
        self.end - self.base
    }

    /// Whether every byte written is acknowledged.
    pub(crate) fn is_fully_acked(&self) -> bool {
        self.base == self.end
    }

    /// Whether bytes are to be retransmitted.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Bytes to be retransmitted.
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost.iter().map(|range| range.end - range.start).sum()
    }

    /// Offset of the bytes that [`Self::take`] returns next.
    pub(crate) fn next_offset(&self) -> u64 {
        self.lost.min().unwrap_or(self.unsent)
    }

    /// Takes up to `max` bytes to send: lost ones first, then unsent ones.
    ///
    /// `None` if there are none or `max` is 0.
    pub(crate) fn take(&mut self, max: usize) -> Option<Range<u64>> {
        self.take_lost(max).or_else(|| self.take_unsent(max))
    }

    /// Takes up to `max` lost bytes, lowest first.
    pub(crate) fn take_lost(&mut self, max: usize) -> Option<Range<u64>> {
        let first = self.lost.iter().next()?;
        let range = first.start..first.end.min(first.start.saturating_add(max as u64));
        self.lost.remove(range.clone());
        (!range.is_empty()).then_some(range)
    }

    /// Takes up to `max` bytes that were never sent.
    pub(crate) fn take_unsent(&mut self, max: usize) -> Option<Range<u64>> {
        let range = self.unsent..self.end.min(self.unsent.saturating_add(max as u64));
        self.unsent = range.end;
        (!range.is_empty()).then_some(range)
    }

    /// Part of `range` that is still held: its front may have been acknowledged and freed.
    pub(crate) fn held(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.end).max(self.base);
        range.start.clamp(self.base, end)..end
    }

    /// Appends the bytes of `range` to `buf`, as far as they are [held](Self::held).
    ///
    /// O(1) when `range` follows the one read before, else O(log chunks). Allocates only if `buf`
    /// lacks room.
    pub(crate) fn read_into(&self, range: Range<u64>, buf: &mut Vec<u8>) {
        let Range { mut start, end } = self.held(range);
        let mut index = self.find(start);
        while start < end {
            let Some(chunk) = self.chunks.get(index) else {
                let tail_offset = self.tail_offset();
                let from = (start - tail_offset) as usize;
                buf.extend_from_slice(&self.tail[from..(end - tail_offset) as usize]);
                break;
            };
            let stop = end.min(chunk.end());
            let from = (start - chunk.offset) as usize;
            buf.extend_from_slice(&chunk.bytes[from..(stop - chunk.offset) as usize]);
            start = stop;
            if stop == chunk.end() {
                index += 1;
            }
        }
        self.last_read.set(index);
    }

    /// Index of the chunk that holds `offset`; the number of chunks if the tail does.
    fn find(&self, offset: u64) -> usize {
        let hint = self.last_read.get().min(self.chunks.len());
        let begins = hint == 0 || self.chunks[hint - 1].end() <= offset;
        let ends = self.chunks.get(hint).is_none_or(|c| offset < c.end());
        if begins && ends {
            return hint;
        }
        self.chunks.partition_point(|chunk| chunk.end() <= offset)
    }

    /// The parts of `range` that are in flight exactly once, lowest first.
    pub(crate) fn in_flight_once(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = self.held(range);
        let unacked = self.acked.gaps(start..end.min(self.unsent));
        unacked.flat_map(|unacked| self.copied.gaps(unacked))
    }

    /// Marks `range`, which was [in flight once](Self::in_flight_once), as in flight twice.
    pub(crate) fn on_copied(&mut self, range: Range<u64>) {
        self.copied.insert(range);
    }

    /// Marks `range` as acknowledged; frees memory that is no longer needed.
    pub(crate) fn on_acked(&mut self, range: Range<u64>) {
        if !self.copied.is_empty() {
            self.copied.remove(range.clone());
        }
        if !self.lost.is_empty() {
            self.lost.remove(range.clone());
        }
        if range.start > self.base {
            self.acked.insert(range);
            return;
        }
        self.base = self.base.max(range.end.min(self.end));
        while let Some(next) = self.acked.min().filter(|&start| start <= self.base) {
            let end = self.acked.pop_min().map_or(next, |range| range.end);
            self.base = self.base.max(end);
        }
        self.unsent = self.unsent.max(self.base);
        self.free();
    }

    fn free(&mut self) {
        while self.chunks.front().is_some_and(|c| c.end() <= self.base) {
            self.chunks.pop_front();
            self.last_read.set(self.last_read.get().saturating_sub(1));
        }
        if self.is_fully_acked() {
            if self.tail.capacity() > FIRST_CHUNK {
                self.tail = BytesMut::new();
            }
            self.tail.clear();
        }
    }

    /// Marks `range` as lost: bytes that are unacknowledged and have no copy in flight are due again.
    pub(crate) fn on_lost(&mut self, range: Range<u64>) {
        let Range { start, end } = self.held(range);
        let range = start..end.min(self.unsent);
        if self.acked.is_empty() && self.copied.is_empty() {
            self.lost.insert(range);
            return;
        }
        for single in self.copied.gaps(range.clone()) {
            for gap in self.acked.gaps(single) {
                self.lost.insert(gap);
            }
        }
        self.copied.remove(range);
    }

    /// Marks all bytes held as unsent (0-RTT rejected, Retry).
    pub(crate) fn retransmit_all(&mut self) {
        self.unsent = self.base;
        self.lost.clear();
        self.copied.clear();
    }

    /// Drops all content, which will not be sent. Offsets are unchanged.
    pub(crate) fn discard(&mut self) {
        *self = Self {
            base: self.end,
            unsent: self.end,
            end: self.end,
            ..Self::default()
        };
    }
}
