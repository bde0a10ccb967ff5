//! A layer of a packet, as far as it was captured.

use super::{Malformed, u16_at};

/// The bytes from the beginning of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The captured bytes.
    pub(super) data: &'a [u8],
    /// The number of bytes.
    pub(super) length: usize,
    /// Whether there are more than `length`, elsewhere: in later fragments, or cut off before.
    pub(super) is_open: bool,
}

impl<'a> Part<'a> {
    /// A whole part, of which `data` was captured.
    #[inline(always)]
    pub(super) const fn new(data: &'a [u8], length: usize) -> Self {
        Self {
            data,
            length,
            is_open: false,
        }
    }

    /// The bytes after the first `n`, if they were captured.
    #[inline(always)]
    pub(super) fn after(self, n: usize) -> Result<Self, Malformed> {
        match self.data.get(n..) {
            Some(data) => Ok(Self {
                data,
                length: self.length.saturating_sub(n),
                is_open: self.is_open,
            }),
            None => Err(self.cut(n)),
        }
    }

    /// The reason why `n` bytes are missing: the link or the capture.
    pub(super) fn cut(self, n: usize) -> Malformed {
        match self.length < n && !self.is_open {
            true => Malformed::Link,
            false => Malformed::Cut,
        }
    }

    pub(super) fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Malformed> {
        let bytes = self.data.get(at..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or_else(|| self.cut(at + N))
    }

    pub(super) fn u8(self, at: usize) -> Result<u8, Malformed> {
        Ok(self.array::<1>(at)?[0])
    }

    #[inline(always)]
    pub(super) fn u16(self, at: usize) -> Result<u16, Malformed> {
        u16_at(self.data, at).ok_or_else(|| self.cut(at + 2))
    }

    pub(super) fn u32(self, at: usize) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array(at)?))
    }

    /// The first `length` bytes, if there are as many.
    pub(super) fn limit(self, length: usize) -> Self {
        Self {
            data: &self.data[..self.data.len().min(length)],
            length: self.length.min(length),
            is_open: self.is_open && length > self.length,
        }
    }
}
