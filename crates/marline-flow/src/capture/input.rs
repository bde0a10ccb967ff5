//! The bytes of a capture, read in large pieces.

use std::io::{self, ErrorKind, Read};

use super::gzip::Bytes;
use crate::limits::{MAX_BLOCK, READ_SIZE};

/// A window of the source. The next call skips the bytes that the caller has taken.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: Bytes<R>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The position of the buffer in the source.
    position: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R) -> io::Result<Self> {
        Ok(Self {
            source: Bytes::of(source)?,
            buffer: vec![0; READ_SIZE],
            start: 0,
            end: 0,
            position: 0,
        })
    }

    /// Whether `n` bytes are left, reading as many. At most [`MAX_BLOCK`] can be requested.
    #[inline(always)]
    pub(super) fn has(&mut self, n: usize) -> io::Result<bool> {
        if self.end - self.start >= n {
            return Ok(true);
        }
        self.fill(n)
    }

    #[cold]
    fn fill(&mut self, n: usize) -> io::Result<bool> {
        debug_assert!(n <= MAX_BLOCK);
        self.buffer.copy_within(self.start..self.end, 0);
        self.position += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < n {
            self.buffer.resize(n.next_multiple_of(READ_SIZE), 0);
        }
        while self.end < n {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.source.fault(error, self.position)),
            }
        }
        Ok(true)
    }

    /// The bytes that are read and not taken.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// `N` bytes at an offset, which [`has`](Self::has) found.
    #[inline(always)]
    pub(super) fn array<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes()[offset..offset + N]);
        array
    }

    /// Skips `n` bytes that are read.
    #[inline(always)]
    pub(super) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
    }

    /// Takes `n` bytes that are read.
    #[inline(always)]
    pub(super) fn take(&mut self, n: usize) -> &[u8] {
        self.consume(n);
        &self.buffer[self.start - n..self.start]
    }

    /// Skips `n` bytes that need not fit into the buffer. Returns whether there were as many.
    pub(super) fn skip(&mut self, mut n: u64) -> io::Result<bool> {
        while n > 0 {
            if !self.has(1)? {
                return Ok(false);
            }
            let step = n.min((self.end - self.start) as u64) as usize;
            self.consume(step);
            n -= step as u64;
        }
        Ok(true)
    }

    /// The position in the decompressed bytes.
    pub(super) fn position(&self) -> u64 {
        self.position + self.start as u64
    }

    /// The number of bytes read from the source, before decompression.
    pub(super) fn taken(&self) -> u64 {
        match self.source.is_compressed() {
            true => self.source.taken(),
            false => self.position(),
        }
    }
}
