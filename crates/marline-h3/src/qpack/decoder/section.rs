//! Encoded field sections (RFC 9204, section 4.5).

use crate::qpack::error::Problem;
use crate::qpack::field::FieldLine;
use crate::qpack::huffman::DecodeError;
use crate::qpack::reader::{Literal, Reader};
use crate::qpack::static_table;
use crate::qpack::table::{Entry, Table};
use bytes::{Buf, Bytes};

/// A field section whose prefix has been read.
#[derive(Debug)]
pub(super) struct Section {
    required_insert_count: u64,
    base: u64,
    lines: Bytes,
}

/// The outcome of decoding a section.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lines {
    Fields(Vec<FieldLine>),
    TooLarge,
}

impl Section {
    /// Reads the prefix (RFC 9204, section 4.5.1). `max_entries` is the maximum capacity by the smallest size of an entry.
    pub(super) fn read(
        mut bytes: Bytes,
        insert_count: u64,
        max_entries: u64,
    ) -> Result<Self, Problem> {
        let mut reader = Reader::new(&bytes);
        let encoded = reader.integer(8)?;
        let required_insert_count = required_insert_count(encoded, insert_count, max_entries)
            .ok_or(Problem::RequiredInsertCount(encoded))?;
        let is_negative = reader.peek().is_some_and(|byte| byte & 0x80 != 0);
        let delta = reader.integer(7)?;
        let base = if is_negative {
            required_insert_count
                .checked_sub(delta)
                .and_then(|base| base.checked_sub(1))
                .ok_or(Problem::Base(delta))?
        } else {
            required_insert_count + delta
        };
        let prefix = bytes.len() - reader.rest().len();
        bytes.advance(prefix);
        Ok(Self {
            required_insert_count,
            base,
            lines: bytes,
        })
    }

    pub(super) fn required_insert_count(&self) -> u64 {
        self.required_insert_count
    }

    /// Bytes of the encoded lines.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Decodes the lines. Stops when their size exceeds `max_size` (RFC 9114, section 4.2.2).
    pub(super) fn decode(&self, table: &Table, max_size: u64) -> Result<Lines, Problem> {
        let mut reader = Reader::new(&self.lines);
        let mut lines = Vec::new();
        let mut left = usize::try_from(max_size).unwrap_or(usize::MAX);
        while let Some(first) = reader.peek() {
            let Some(line) = self.line(first, &mut reader, table, left)? else {
                return Ok(Lines::TooLarge);
            };
            let Some(rest) = left.checked_sub(line.size()) else {
                return Ok(Lines::TooLarge);
            };
            left = rest;
            lines.push(line);
        }
        Ok(Lines::Fields(lines))
    }

    /// Reads the line that begins with the byte `first`; `None` if a string of it takes more than `left` bytes.
    fn line(
        &self,
        first: u8,
        reader: &mut Reader<'_>,
        table: &Table,
        left: usize,
    ) -> Result<Option<FieldLine>, Problem> {
        let (name, is_sensitive) = match first >> 4 {
            0b1100..=0b1111 => {
                let line = static_line(reader.integer(6)?)?;
                return Ok(Some(FieldLine {
                    name: Bytes::from_static(line.name.as_bytes()),
                    value: Bytes::from_static(line.value.as_bytes()),
                    is_sensitive: false,
                }));
            }
            0b1000..=0b1011 => {
                return Ok(Some(copy(self.relative(reader.integer(6)?, table)?)));
            }
            0b0001 => return Ok(Some(copy(self.post_base(reader.integer(4)?, table)?))),
            0b0101 | 0b0111 => {
                let line = static_line(reader.integer(4)?)?;
                (Bytes::from_static(line.name.as_bytes()), first & 0x20 != 0)
            }
            0b0100 | 0b0110 => {
                let entry = self.relative(reader.integer(4)?, table)?;
                (entry.name.clone(), first & 0x20 != 0)
            }
            0b0010 | 0b0011 => {
                let Some(name) = self.string(reader.literal(4, usize::MAX)?, left)? else {
                    return Ok(None);
                };
                (name, first & 0x10 != 0)
            }
            _ => {
                let entry = self.post_base(reader.integer(3)?, table)?;
                (entry.name.clone(), first & 0x08 != 0)
            }
        };
        let literal = reader.literal(8, usize::MAX)?;
        Ok(self.string(literal, left)?.map(|value| FieldLine {
            name,
            value,
            is_sensitive,
        }))
    }

    /// The string, shared with the section unless it is Huffman-coded; `None` if it is longer than `limit`.
    fn string(&self, literal: Literal<'_>, limit: usize) -> Result<Option<Bytes>, Problem> {
        if let Some(plain) = literal.plain() {
            return Ok((plain.len() <= limit).then(|| self.lines.slice_ref(plain)));
        }
        let mut string = Vec::new();
        match literal.decode_into(limit, &mut string) {
            Ok(()) => Ok(Some(string.into())),
            Err(DecodeError::TooLong) => Ok(None),
            Err(DecodeError::Invalid(problem)) => Err(problem),
        }
    }

    /// The entry at an index relative to the Base (RFC 9204, section 3.2.5).
    fn relative<'t>(&self, relative: u64, table: &'t Table) -> Result<&'t Entry, Problem> {
        self.base
            .checked_sub(relative)
            .and_then(|index| index.checked_sub(1))
            .and_then(|index| self.entry(index, table))
            .ok_or(Problem::DynamicIndex(relative))
    }

    /// The entry at a post-Base index (RFC 9204, section 3.2.6).
    fn post_base<'t>(&self, post_base: u64, table: &'t Table) -> Result<&'t Entry, Problem> {
        self.entry(self.base + post_base, table)
            .ok_or(Problem::DynamicIndex(post_base))
    }

    fn entry<'t>(&self, index: u64, table: &'t Table) -> Option<&'t Entry> {
        if index >= self.required_insert_count {
            return None;
        }
        table.get(index)
    }
}

/// Restores the Required Insert Count; `None` if no conformant encoder writes it (RFC 9204, section 4.5.1.1).
fn required_insert_count(encoded: u64, insert_count: u64, max_entries: u64) -> Option<u64> {
    if encoded == 0 {
        return Some(0);
    }
    let full_range = 2 * max_entries;
    if encoded > full_range {
        return None;
    }
    let max = insert_count + max_entries;
    let wrapped = max / full_range * full_range;
    let mut count = wrapped + encoded - 1;
    if count > max {
        count = count.checked_sub(full_range)?;
    }
    (count > 0).then_some(count)
}

fn static_line(index: u64) -> Result<&'static static_table::StaticLine, Problem> {
    static_table::get(index).ok_or(Problem::StaticIndex(index))
}

fn copy(entry: &Entry) -> FieldLine {
    FieldLine {
        name: entry.name.clone(),
        value: entry.value.clone(),
        is_sensitive: false,
    }
}
