//! A page of stream bytes with a map of those that arrived.

use bytes::{Bytes, BytesMut};

/// Size of a page in bytes; pages are aligned to it.
pub(super) const PAGE_SIZE: usize = 4096;

const WORD: usize = u64::BITS as usize;

/// [`PAGE_SIZE`] bytes of which any subset has arrived; the front can be cut off.
#[derive(Debug)]
pub(super) struct Page {
    /// Bytes from position `start` to the end of the page.
    bytes: BytesMut,
    /// Position of the first byte not cut off.
    start: usize,
    /// One bit for each position, set if its byte has arrived.
    arrived: [u64; PAGE_SIZE / WORD],
}

impl Default for Page {
    fn default() -> Self {
        Self {
            bytes: BytesMut::zeroed(PAGE_SIZE),
            start: 0,
            arrived: [0; PAGE_SIZE / WORD],
        }
    }
}

impl Page {
    /// Stores `data` at position `from`; returns the number of new bytes.
    ///
    /// Bytes that were cut off or do not fit are ignored.
    pub(super) fn fill(&mut self, from: usize, data: &[u8]) -> usize {
        let to = (from + data.len()).min(PAGE_SIZE);
        let first = from.max(self.start);
        if first >= to {
            return 0;
        }
        self.bytes[first - self.start..to - self.start]
            .copy_from_slice(&data[first - from..to - from]);
        let mut new = 0;
        for (word, mask) in masks(first, to) {
            new += (mask & !self.arrived[word]).count_ones() as usize;
            self.arrived[word] |= mask;
        }
        new
    }

    /// Cuts off everything before position `to`; returns the number of arrived bytes that are dropped.
    pub(super) fn skip_to(&mut self, to: usize) -> usize {
        if to <= self.start {
            return 0;
        }
        let dropped = masks(self.start, to)
            .map(|(word, mask)| (self.arrived[word] & mask).count_ones() as usize)
            .sum();
        let _ = self.bytes.split_to(to - self.start);
        self.start = to;
        dropped
    }

    /// Number of bytes from the front that have arrived without a gap.
    pub(super) fn run_len(&self) -> usize {
        let mut at = self.start;
        while at < PAGE_SIZE {
            let ones = (self.arrived[at / WORD] >> (at % WORD)).trailing_ones() as usize;
            at += ones;
            if ones == 0 || !at.is_multiple_of(WORD) {
                break;
            }
        }
        at - self.start
    }

    /// Cuts off and returns the first `len` bytes.
    pub(super) fn split_run(&mut self, len: usize) -> Bytes {
        self.start += len;
        self.bytes.split_to(len).freeze()
    }

    /// Whether everything is cut off.
    pub(super) fn is_used_up(&self) -> bool {
        self.start == PAGE_SIZE
    }

    /// Address of the bytes in memory.
    #[cfg(test)]
    pub(super) fn address(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Number of bytes that have arrived and are not cut off.
    pub(super) fn filled(&self) -> usize {
        masks(self.start, PAGE_SIZE)
            .map(|(word, mask)| (self.arrived[word] & mask).count_ones() as usize)
            .sum()
    }
}

/// The bits of positions `from..to`, word by word.
fn masks(from: usize, to: usize) -> impl Iterator<Item = (usize, u64)> {
    (from / WORD..to.div_ceil(WORD)).map(move |word| {
        let first = from.saturating_sub(word * WORD);
        let last = (to - word * WORD).min(WORD);
        (word, (u64::MAX << first) & (u64::MAX >> (WORD - last)))
    })
}
