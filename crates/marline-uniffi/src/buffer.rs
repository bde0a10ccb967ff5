//! Bytes that are read for the caller.

use marline_ffi::failure::Failure;

use crate::failure::MarlineError;

/// Bytes of one call, at most: a caller's number decides what is allocated.
const MAX_READ: u32 = 1 << 20;

/// Up to `length` bytes, of which `read` returns how many it has written.
pub(crate) fn filled(
    length: u32,
    read: impl FnOnce(&mut [u8]) -> Result<usize, Failure>,
) -> Result<Vec<u8>, MarlineError> {
    let mut buffer = vec![0; length.min(MAX_READ) as usize];
    let written = read(&mut buffer)?;
    buffer.truncate(written);
    Ok(buffer)
}
