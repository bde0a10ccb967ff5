//! Decryption Secrets Blocks of pcapng (draft-ietf-opsawg-pcapng, section 4.7).
//!
//! ```text
//! Block Body {
//!   Secrets Type (32),
//!   Secrets Length (32),
//!   Secrets Data (..),          // padded to 32 bits
//!   Options (..),
//! }
//! ```

use std::io::Read;

use super::ByteOrder;
use super::error::Problem;
use super::input::Input;
use crate::limits::MAX_LINE;

/// The secrets type of a key log of TLS.
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// The frame of the block before its body, and the two fields before the secrets.
const HEADER: usize = 16;
/// The length of the block, which is repeated after its body.
const TRAILER: usize = 4;

/// A block with a key log of TLS, which is read by line: it may be as long as the file.
#[derive(Debug)]
pub(super) struct KeyLogBlock {
    /// Its position in the capture.
    at: u64,
    /// Bytes of unread lines.
    lines: usize,
    /// Bytes after the lines.
    after: usize,
}

impl KeyLogBlock {
    /// Takes the beginning of a secrets block of `length` bytes at `input`'s position; `None`, without taking anything, if
    /// it has no key log of TLS.
    pub(super) fn begin<R: Read>(
        input: &mut Input<R>,
        order: ByteOrder,
        length: usize,
    ) -> Result<Option<Self>, Problem> {
        let at = input.position();
        let Some(room) = length.checked_sub(HEADER + TRAILER) else {
            return Ok(None);
        };
        if !input.has(HEADER)? {
            return Err(Problem::Truncated(at));
        }
        let [kind, secrets] = [8, 12].map(|offset| order.u32(input.array(offset)));
        if kind != TLS_KEY_LOG {
            return Ok(None);
        }
        input.consume(HEADER);
        // Packets can be read though a block claims more secrets than it has room for.
        let lines = (secrets as usize).min(room);
        Ok(Some(Self {
            at,
            lines,
            after: room - lines + TRAILER,
        }))
    }

    /// The length of the next line, which `input` then has at its position; `None` after the last one, when the block is
    /// skipped. A line that is too long is split at the longest length.
    pub(super) fn next_line<R: Read>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<usize>, Problem> {
        let ahead = self.lines.min(MAX_LINE as usize);
        if ahead == 0 {
            return match input.skip(self.after as u64)? {
                true => Ok(None),
                false => Err(Problem::Truncated(self.at)),
            };
        }
        if !input.has(ahead)? {
            return Err(Problem::Truncated(self.at));
        }
        let end = input.bytes()[..ahead]
            .iter()
            .position(|byte| *byte == b'\n');
        let length = end.map_or(ahead, |end| end + 1);
        self.lines -= length;
        Ok(Some(length))
    }
}
