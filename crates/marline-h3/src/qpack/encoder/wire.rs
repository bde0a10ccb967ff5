//! Writes instructions and representations of field lines (RFC 9204, sections 4.3 and 4.5).

use crate::qpack::huffman;
use crate::qpack::integer;

/// The table entry with the name of a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameReference {
    /// At an index of the static table.
    Static(u64),
    /// At an absolute index of the dynamic table.
    Dynamic(u64),
}

/// Appends a string with a prefix of `bits`, the Huffman flag included: Huffman-coded if that is shorter.
fn string(string: &[u8], bits: u32, flags: u8, out: &mut Vec<u8>) {
    let encoded = huffman::encoded_len(string);
    if encoded < string.len() {
        integer::encode(encoded as u64, bits - 1, flags | 1 << (bits - 1), out);
        huffman::encode(string, out);
    } else {
        integer::encode(string.len() as u64, bits - 1, flags, out);
        out.extend_from_slice(string);
    }
}

/// Set Dynamic Table Capacity (section 4.3.1).
pub(super) fn set_capacity(capacity: u64, out: &mut Vec<u8>) {
    integer::encode(capacity, 5, 0x20, out);
}

/// Insert, after `insert_count` insertions (sections 4.3.2 and 4.3.3).
pub(super) fn insert(
    reference: Option<NameReference>,
    insert_count: u64,
    name: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    match reference {
        Some(NameReference::Static(index)) => integer::encode(index, 6, 0xc0, out),
        Some(NameReference::Dynamic(index)) => {
            integer::encode(insert_count - 1 - index, 6, 0x80, out);
        }
        None => string(name, 6, 0x40, out),
    }
    string(value, 8, 0, out);
}

/// Duplicate, after `insert_count` insertions, the entry at `index` (section 4.3.4).
pub(super) fn duplicate(index: u64, insert_count: u64, out: &mut Vec<u8>) {
    integer::encode(insert_count - 1 - index, 5, 0, out);
}

/// The prefix of a section (section 4.5.1). `max_entries` is the peer's maximum capacity by the smallest size of an entry.
pub(super) fn prefix(required_insert_count: u64, base: u64, max_entries: u64, out: &mut Vec<u8>) {
    if required_insert_count == 0 {
        out.extend_from_slice(&[0, 0]);
        return;
    }
    integer::encode(required_insert_count % (2 * max_entries) + 1, 8, 0, out);
    if base >= required_insert_count {
        integer::encode(base - required_insert_count, 7, 0, out);
    } else {
        integer::encode(required_insert_count - base - 1, 7, 0x80, out);
    }
}

/// Indexed field line in the static table (section 4.5.2).
pub(super) fn static_line(index: u64, out: &mut Vec<u8>) {
    integer::encode(index, 6, 0xc0, out);
}

/// Indexed field line in the dynamic table, before or after the Base (sections 4.5.2 and 4.5.3).
pub(super) fn dynamic_line(index: u64, base: u64, out: &mut Vec<u8>) {
    if index < base {
        integer::encode(base - 1 - index, 6, 0x80, out);
    } else {
        integer::encode(index - base, 4, 0x10, out);
    }
}

/// The name of a literal field line (sections 4.5.4 to 4.5.6); [`literal_value`] follows.
pub(super) fn literal_name(
    reference: Option<NameReference>,
    base: u64,
    name: &[u8],
    is_sensitive: bool,
    out: &mut Vec<u8>,
) {
    let flag = |bit: u8| if is_sensitive { bit } else { 0 };
    match reference {
        Some(NameReference::Static(index)) => integer::encode(index, 4, 0x50 | flag(0x20), out),
        Some(NameReference::Dynamic(index)) if index < base => {
            integer::encode(base - 1 - index, 4, 0x40 | flag(0x20), out);
        }
        Some(NameReference::Dynamic(index)) => {
            integer::encode(index - base, 3, flag(0x08), out);
        }
        None => string(name, 4, 0x20 | flag(0x10), out),
    }
}

/// The value of a literal field line.
pub(super) fn literal_value(value: &[u8], out: &mut Vec<u8>) {
    string(value, 8, 0, out);
}
