//! Reassembly of received bytes.

mod page;
#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use page::{PAGE_SIZE, Page};
use std::collections::{BTreeMap, VecDeque};

/// Size of the smallest chunk for in-order bytes: streams of a few bytes are common.
const FIRST_CHUNK: usize = 256;
/// Chunks double up to this size, in bytes: few allocations, while a slow reader pins little memory.
const LARGEST_CHUNK: usize = 32 * 1024;
/// Maximum length of runs that are copied out of their page, in bytes: below it a queue entry would
/// cost more than the copy.
const COPY_BELOW: usize = 512;

/// Reassembles the bytes of a stream.
///
/// Bytes that continue the stream go to the end of a growing chunk, from which reads are cut without copying.
/// Bytes beyond a gap are stored in fixed pages; when the gap closes, a page is added to the readable bytes
/// without copying. So memory never exceeds the span from the first unread byte to the highest received one
/// plus an eighth and a few pages regardless of how the peer splits and orders its frames, and the work for a
/// frame is linear in its length.
///
/// The caller limits the span (by flow control): the assembler accepts any offset.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// Readable pieces, oldest first, before those in `tail`.
    ready: VecDeque<Bytes>,
    /// The newest readable bytes, and spare capacity.
    tail: BytesMut,
    /// Size of the chunk from which `tail` was split.
    chunk: usize,
    /// Bytes beyond the first gap, by page number (offset / page size).
    pages: BTreeMap<u64, Page>,
    /// Bytes held in `pages`.
    beyond_gap: usize,
    /// Offset of the next byte to be read.
    read: u64,
    /// Offset of the first byte not received.
    received: u64,
    /// One more than the highest offset received.
    end: u64,
    /// Final size of the stream, once known.
    total: Option<u64>,
}

impl Assembler {
    /// An empty assembler without allocations.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the bytes at `offset`; bytes that were received before are skipped.
    pub(crate) fn insert(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        self.end = self.end.max(end);
        if end <= self.received {
            return;
        }
        if offset > self.received {
            return self.insert_beyond_gap(offset, data);
        }
        self.append(&data[(self.received - offset) as usize..]);
        if !self.pages.is_empty() {
            self.close_gap();
        }
    }

    /// Sets the final size of the stream, beyond which no memory is reserved.
    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = Some(total);
    }

    /// Takes up to `max` bytes in order; `None` if the next one is missing or `max` is 0.
    pub(crate) fn read(&mut self, max: usize) -> Option<Bytes> {
        let bytes = if let Some(front) = self.ready.front_mut() {
            if front.len() > max {
                front.split_to(max)
            } else {
                self.ready.pop_front()?
            }
        } else {
            let len = self.tail.len().min(max);
            if len == 0 {
                return None;
            }
            if len == self.tail.len() && self.is_whole() {
                // The rest of the chunk will not be used.
                std::mem::take(&mut self.tail).freeze()
            } else {
                self.tail.split_to(len).freeze()
            }
        };
        self.read += bytes.len() as u64;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Bytes read so far: the offset of the next byte to be read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Bytes held that cannot be read because earlier ones are missing.
    pub(crate) fn out_of_order(&self) -> usize {
        self.beyond_gap
    }

    /// Bytes held, readable or not.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn buffered(&self) -> usize {
        (self.received - self.read) as usize + self.beyond_gap
    }

    /// Offset of the first byte not received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// One more than the highest offset received.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Whether [`Assembler::read`] would return something.
    pub(crate) fn is_readable(&self) -> bool {
        self.received > self.read
    }

    /// Whether every byte of the stream was received.
    fn is_whole(&self) -> bool {
        self.total == Some(self.received)
    }

    /// Drops all content, which will not be read. Offsets are unchanged.
    pub(crate) fn discard(&mut self) {
        *self = Self {
            read: self.end,
            received: self.end,
            end: self.end,
            total: self.total,
            ..Self::default()
        };
    }

    /// Adds bytes that continue the readable ones.
    fn append(&mut self, mut data: &[u8]) {
        self.received += data.len() as u64;
        while !data.is_empty() {
            let room = self.tail.capacity() - self.tail.len();
            if room == 0 {
                self.grow(data.len());
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            self.tail.extend_from_slice(now);
            data = later;
        }
    }

    /// Makes room in the tail: in the same chunk if all of it is read and released, else in a new one, of
    /// exactly `wanted` bytes if these are the last.
    fn grow(&mut self, wanted: usize) {
        if self.tail.is_empty() && self.chunk > 0 && self.tail.try_reclaim(self.chunk) {
            return;
        }
        self.finish_tail();
        self.chunk = match self.is_whole() {
            true => wanted.min(LARGEST_CHUNK),
            false => (self.chunk * 2)
                .clamp(FIRST_CHUNK, LARGEST_CHUNK)
                .max(wanted.min(LARGEST_CHUNK)),
        };
        self.tail = BytesMut::with_capacity(self.chunk);
    }

    /// Queues the content of the tail, which keeps its spare capacity.
    fn finish_tail(&mut self) {
        if !self.tail.is_empty() {
            self.ready.push_back(self.tail.split().freeze());
        }
    }

    fn insert_beyond_gap(&mut self, mut offset: u64, mut data: &[u8]) {
        while !data.is_empty() {
            let number = offset / PAGE_SIZE as u64;
            let from = (offset % PAGE_SIZE as u64) as usize;
            let (now, later) = data.split_at(data.len().min(PAGE_SIZE - from));
            let page = self.pages.entry(number).or_default();
            self.beyond_gap += page.fill(from, now);
            offset += now.len() as u64;
            data = later;
        }
    }

    /// Moves bytes that follow the readable ones without a gap out of the pages.
    fn close_gap(&mut self) {
        while let Some(mut entry) = self.pages.first_entry() {
            let page_start = entry.key() * PAGE_SIZE as u64;
            let from = self.received.saturating_sub(page_start);
            if from < PAGE_SIZE as u64 {
                if self.received < page_start {
                    return;
                }
                let page = entry.get_mut();
                self.beyond_gap -= page.skip_to(from as usize);
                let run = page.run_len();
                if run == 0 {
                    if page.filled() == 0 {
                        entry.remove();
                    }
                    return;
                }
                let bytes = page.split_run(run);
                let page_done = page.is_used_up();
                self.beyond_gap -= run;
                if page_done {
                    entry.remove();
                }
                self.append_run(bytes);
            } else {
                self.beyond_gap -= entry.remove().filled();
            }
        }
    }

    fn append_run(&mut self, bytes: Bytes) {
        if bytes.len() < COPY_BELOW {
            return self.append(&bytes);
        }
        self.received += bytes.len() as u64;
        self.finish_tail();
        self.ready.push_back(bytes);
    }
}
