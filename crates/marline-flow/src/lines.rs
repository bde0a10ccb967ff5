//! Lines of key logs and access logs, which are not trusted.

use std::io::{self, BufRead, Read};

use crate::limits::MAX_LINE;

/// Reads the next line into `text`, with its line feed; false at the end. A longer line than [`MAX_LINE`] is taken in parts.
///
/// # Errors
///
/// The reader's.
pub(crate) fn next_line(reader: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<bool> {
    text.clear();
    let mut limited = reader.take(MAX_LINE);
    Ok(limited.read_until(b'\n', text)? > 0)
}
