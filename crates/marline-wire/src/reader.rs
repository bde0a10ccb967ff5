//! A cursor over received bytes.

/// Error: the input ends before the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl std::fmt::Display for Truncated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the input ends within a value")
    }
}

impl std::error::Error for Truncated {}

/// Reads values from the front of a slice; returned slices borrow from it.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether all bytes are read.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Number of remaining bytes.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the next `n` bytes.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if fewer remain.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, tail) = self.bytes.split_at_checked(n).ok_or(Truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    /// Takes all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Takes `N` bytes as an array.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if fewer remain.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, tail) = self.bytes.split_first_chunk().ok_or(Truncated)?;
        self.bytes = tail;
        Ok(*head)
    }

    /// Takes one byte.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if none remains.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        let (&first, tail) = self.bytes.split_first().ok_or(Truncated)?;
        self.bytes = tail;
        Ok(first)
    }

    /// Takes a big-endian 32-bit integer.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if fewer than four bytes remain.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Takes a variable-length integer (RFC 9000, section 16).
    ///
    /// # Errors
    ///
    /// [`Truncated`] if the bytes end first.
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let first = self.u8()?;
        let mut value = u64::from(first & 0x3f);
        for _ in 1..1usize << (first >> 6) {
            value = value << 8 | u64::from(self.u8()?);
        }
        Ok(value)
    }

    /// Takes a variable-length integer and that many bytes after it.
    ///
    /// # Errors
    ///
    /// [`Truncated`] if the bytes end first.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let len = self.varint()?;
        self.take(usize::try_from(len).map_err(|_| Truncated)?)
    }
}
