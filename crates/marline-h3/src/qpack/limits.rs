//! Every limit of field compression beyond the settings, with its reason.

/// Entries are counted with this many bytes beside name and value (RFC 9204, section 3.2.1). Field lines are,
/// too (RFC 9114, section 4.2.2).
pub(super) const ENTRY_OVERHEAD: usize = 32;

/// Bytes counted for each blocked section beside its own, so that the number of small ones is limited too.
pub(super) const BLOCKED_SECTION_OVERHEAD: usize = 64;

/// Sections with references that the encoder remembers until they are acknowledged. A peer that acknowledges none gets
/// sections without references from then on.
pub(super) const OUTSTANDING_SECTIONS: usize = 1024;

/// An entry takes at most this part of the encoder's table, as a divisor: one field must not evict all others.
pub(super) const LARGEST_ENTRY: usize = 2;

/// The oldest part of a full table is not referenced any more, as a divisor of the capacity, so that its entries become
/// evictable (RFC 9204, section 2.1.1.1).
pub(super) const DRAINING: usize = 4;

/// Field lines, and names, that the encoder remembers to recognise repeated ones: several messages of a dozen lines.
pub(super) const HISTORY: usize = 64;

/// Cookies shorter than this many bytes are not indexed: too few values to guess (RFC 9204, section 7.1.3).
pub(super) const SHORTEST_INDEXED_COOKIE: usize = 20;
