//! Field lines, which QPACK compresses.

use super::limits::ENTRY_OVERHEAD;
use bytes::Bytes;
use std::fmt;

/// A field line as it was received. Whether name and value are allowed is for the layer above to check.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldLine {
    /// The name.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
    /// Whether the sender forbids indexing on every hop: the N bit (RFC 9204, section 7.1.3). An intermediary must
    /// preserve it.
    pub is_sensitive: bool,
}

impl FieldLine {
    /// Size in bytes as SETTINGS_MAX_FIELD_SECTION_SIZE counts it (RFC 9114, section 4.2.2).
    pub fn size(&self) -> usize {
        size(self.name.len(), self.value.len())
    }
}

impl fmt::Debug for FieldLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&FieldRef::from(self), f)
    }
}

/// A field line to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FieldRef<'a> {
    /// The name, in lower case.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Whether the line is sent as a literal that no hop may index (RFC 9204, section 7.1.3).
    pub is_sensitive: bool,
}

impl<'a> From<&'a FieldLine> for FieldRef<'a> {
    fn from(line: &'a FieldLine) -> Self {
        Self {
            name: &line.name,
            value: &line.value,
            is_sensitive: line.is_sensitive,
        }
    }
}

/// Omits the value of a sensitive line, which must not be logged.
impl fmt::Debug for FieldRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name.escape_ascii())?;
        if self.is_sensitive {
            f.write_str("(sensitive)")
        } else {
            write!(f, "{}", self.value.escape_ascii())
        }
    }
}

/// Size of a field line, which is that of a table entry, too (RFC 9204, section 3.2.1).
pub(super) fn size(name: usize, value: usize) -> usize {
    name.saturating_add(value).saturating_add(ENTRY_OVERHEAD)
}
