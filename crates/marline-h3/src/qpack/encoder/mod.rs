//! The encoder (RFC 9204, section 2.1).

mod index;
mod outstanding;
mod policy;
#[cfg(test)]
mod tests;
mod wire;

use super::error::Error;
use super::field::{self, FieldRef};
use super::limits::{DRAINING, ENTRY_OVERHEAD, LARGEST_ENTRY};
use super::reader::{ReadError, Reader};
use super::static_table::{self, Match};
use super::table::Table;
use bytes::Bytes;
use index::Index;
use outstanding::{Outstanding, References};
use policy::{History, Indexing};
use wire::NameReference;

/// The limits that an encoder applies in addition to those of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderLimits {
    /// Bytes of the dynamic table; 0 for none.
    pub table_capacity: u64,
    /// Streams at a time whose sections may refer to insertions that the peer has not acknowledged, and so wait for a
    /// retransmission on the encoder stream; 0 for none.
    pub blocked_streams: u64,
}

/// Encodes field sections.
///
/// # What is inserted into the dynamic table
///
/// - Fields that rarely change during a connection (`:authority`, `user-agent`, `accept`, `server`, and the like) when they
///   are first sent.
/// - Cookies of 20 bytes or more, too: they are the largest part of many requests, and a guess must match a whole cookie
///   (RFC 9204, section 7.1.1). Shorter ones are never inserted.
/// - Never: lines that the caller marks as sensitive; `authorization`, `proxy-authorization` and `set-cookie`; what
///   belongs to one message or one version of a resource, such as `date`, `content-length`, `etag`.
/// - Other lines when they are repeated, or when a name that no table has is.
/// - No entry larger than half of the table.
///
/// A caller that sends lines of mutually distrustful parties on one connection marks those worth guessing as sensitive.
///
/// # Which entries are referenced
///
/// Entries that the peer has acknowledged. Others only while no more streams may be blocked by that than the peer and
/// [`EncoderLimits`] allow; a line without a usable entry is sent as a literal. Entries of the oldest quarter of a full table
/// are duplicated rather than referenced, so that they become evictable (section 2.1.1.1). A peer that acknowledges
/// nothing for 1024 sections gets no more references.
#[derive(Debug)]
pub struct Encoder {
    limits: EncoderLimits,
    /// The peer's maximum capacity by the smallest size of an entry.
    max_entries: u64,
    /// Streams that may be at risk of being blocked.
    blocked_streams: u64,
    table: Table,
    index: Index,
    outstanding: Outstanding,
    history: History,
    instructions: Vec<u8>,
    /// The beginning of an instruction of the peer; shorter than the longest integer.
    unfinished: Vec<u8>,
    /// The lines of a section that is being encoded; kept for its memory.
    lines: Vec<u8>,
}

/// A section that is being encoded.
#[derive(Debug)]
struct Draft {
    base: u64,
    may_refer: bool,
    may_block: bool,
    references: Option<References>,
}

impl Draft {
    /// Notes a reference to the entry at `index`.
    fn refer(&mut self, index: u64) {
        let references = self.references.get_or_insert(References {
            required_insert_count: 0,
            oldest: index,
        });
        references.required_insert_count = references.required_insert_count.max(index + 1);
        references.oldest = references.oldest.min(index);
    }
}

impl Encoder {
    /// An encoder that uses no dynamic table until it knows the peer's settings.
    pub fn new(limits: EncoderLimits) -> Self {
        Self {
            limits,
            max_entries: 0,
            blocked_streams: 0,
            table: Table::default(),
            index: Index::default(),
            outstanding: Outstanding::default(),
            history: History::default(),
            instructions: Vec::new(),
            unfinished: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// The peer's SETTINGS_QPACK_MAX_TABLE_CAPACITY and SETTINGS_QPACK_BLOCKED_STREAMS, from its SETTINGS frame or, for
    /// 0-RTT, remembered.
    ///
    /// A table capacity of more than 0 is final: a peer may not change what was remembered (RFC 9204, section 3.2.3). The
    /// layer above compares the two; here the first one stays.
    pub fn on_peer_settings(&mut self, max_table_capacity: u64, blocked_streams: u64) {
        self.blocked_streams = blocked_streams.min(self.limits.blocked_streams);
        if self.max_entries > 0 {
            return;
        }
        self.max_entries = max_table_capacity / ENTRY_OVERHEAD as u64;
        let capacity = max_table_capacity.min(self.limits.table_capacity);
        let size = usize::try_from(capacity).unwrap_or(usize::MAX);
        if size >= ENTRY_OVERHEAD {
            self.table.set_capacity(size);
            wire::set_capacity(size as u64, &mut self.instructions);
        }
    }

    /// Appends the encoded section of `fields`, to be sent on `stream_id`, to `section`.
    ///
    /// The section must be sent, or its stream reset: until the peer reports either, its references are outstanding. The
    /// instructions that it may need are in [`take_instructions`](Self::take_instructions) afterwards. They should be sent
    /// first, and only with flow control credit for all of them (RFC 9204, section 2.1.3).
    pub fn encode<'a>(
        &mut self,
        stream_id: u64,
        fields: impl IntoIterator<Item = FieldRef<'a>>,
        section: &mut Vec<u8>,
    ) {
        let mut lines = std::mem::take(&mut self.lines);
        let mut draft = Draft {
            base: self.table.insert_count(),
            may_refer: self.outstanding.has_room(),
            may_block: self.outstanding.may_block(stream_id, self.blocked_streams),
            references: None,
        };
        for field in fields {
            self.encode_line(field, &mut draft, &mut lines);
        }
        let required = draft
            .references
            .map_or(0, |references| references.required_insert_count);
        wire::prefix(required, draft.base, self.max_entries, section);
        section.extend_from_slice(&lines);
        if let Some(references) = draft.references {
            self.outstanding.on_sent(stream_id, references);
        }
        lines.clear();
        self.lines = lines;
    }

    fn encode_line(&mut self, field: FieldRef<'_>, draft: &mut Draft, out: &mut Vec<u8>) {
        let in_static = static_table::find(field.name, field.value);
        if let Match::Line(index) = in_static
            && !field.is_sensitive
        {
            return wire::static_line(index, out);
        }
        let static_name = match in_static {
            Match::Line(index) | Match::Name(index) => Some(NameReference::Static(index)),
            Match::None => None,
        };
        if !field.is_sensitive
            && let Some(index) = self.find_or_insert(field, static_name, draft)
            && self.is_usable(index, draft)
        {
            draft.refer(index);
            return wire::dynamic_line(index, draft.base, out);
        }
        let name = static_name.or_else(|| {
            let index = self.index.find(field.name, field.value).name?;
            if !self.is_usable(index, draft) {
                return None;
            }
            draft.refer(index);
            Some(NameReference::Dynamic(index))
        });
        wire::literal_name(name, draft.base, field.name, field.is_sensitive, out);
        wire::literal_value(field.value, out);
    }

    /// Whether this section may refer to the entry at `index`.
    fn is_usable(&self, index: u64, draft: &Draft) -> bool {
        draft.may_refer
            && !self.is_draining(index)
            && (draft.may_block || index < self.outstanding.known_received())
    }

    /// Whether the entry at `index` is to become evictable.
    fn is_draining(&self, index: u64) -> bool {
        self.table.room_before(index) < self.table.capacity() / DRAINING
    }

    /// The entry of this field line, which is new if the line is worth it.
    fn find_or_insert(
        &mut self,
        field: FieldRef<'_>,
        static_name: Option<NameReference>,
        draft: &Draft,
    ) -> Option<u64> {
        let found = self.index.find(field.name, field.value);
        if let Some(index) = found.line {
            if !self.is_draining(index) {
                return Some(index);
            }
            return self.duplicate(index, draft);
        }
        let indexing = policy::indexing(field.name, field.value);
        if self.table.capacity() == 0 || indexing == Indexing::Never {
            return None;
        }
        let seen = self.history.record(field.name, field.value);
        let is_name_known = static_name.is_some() || found.name.is_some();
        let is_worth_it =
            indexing == Indexing::AtOnce || seen.line || (seen.name && !is_name_known);
        let size = field::size(field.name.len(), field.value.len());
        if !is_worth_it
            || size > self.table.capacity() / LARGEST_ENTRY
            || !self.has_room_for(size, draft)
        {
            return None;
        }
        let name = static_name.or(found.name.map(NameReference::Dynamic));
        wire::insert(
            name,
            self.table.insert_count(),
            field.name,
            field.value,
            &mut self.instructions,
        );
        Some(self.insert(
            Bytes::copy_from_slice(field.name),
            Bytes::copy_from_slice(field.value),
        ))
    }

    /// Duplicates the entry at `index`.
    fn duplicate(&mut self, index: u64, draft: &Draft) -> Option<u64> {
        let entry = self.table.get(index)?;
        let (name, value) = (entry.name.clone(), entry.value.clone());
        if !self.has_room_for(field::size(name.len(), value.len()), draft) {
            return None;
        }
        wire::duplicate(index, self.table.insert_count(), &mut self.instructions);
        Some(self.insert(name, value))
    }

    /// Whether an entry of `size` bytes can be inserted by evicting evictable ones only (RFC 9204, section 2.1.1).
    fn has_room_for(&self, size: usize, draft: &Draft) -> bool {
        let first_kept = [
            Some(self.outstanding.known_received()),
            self.outstanding.oldest_reference(),
            draft.references.map(|references| references.oldest),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(0);
        size <= self.table.room_before(first_kept)
    }

    fn insert(&mut self, name: Bytes, value: Bytes) -> u64 {
        let size = field::size(name.len(), value.len());
        while self.table.must_evict(size) {
            let index = self.table.oldest();
            if let Some(entry) = self.table.evict_oldest() {
                self.index.remove(&entry.name, &entry.value, index);
            }
        }
        let index = self.table.insert_count();
        self.index.insert(name.clone(), value.clone(), index);
        self.table.insert(name, value);
        index
    }

    /// Processes bytes of the peer's decoder stream, cut anywhere.
    ///
    /// # Errors
    ///
    /// [`Error::DecoderStream`] if an instruction is wrong.
    pub fn on_decoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut input = std::mem::take(&mut self.unfinished);
        input.extend_from_slice(bytes);
        let mut reader = Reader::new(&input);
        loop {
            let before = reader.rest();
            match self.apply(&mut reader) {
                Ok(()) => {}
                Err(ReadError::Truncated) => {
                    self.unfinished = before.to_vec();
                    return Ok(());
                }
                Err(ReadError::Invalid(problem)) => return Err(Error::DecoderStream(problem)),
            }
        }
    }

    /// Reads and applies one instruction (RFC 9204, section 4.4).
    fn apply(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        let first = reader.peek().ok_or(ReadError::Truncated)?;
        match first >> 6 {
            0b10 | 0b11 => {
                let stream_id = reader.integer(7)?;
                self.outstanding.on_section_acknowledged(stream_id)?;
            }
            0b01 => self.outstanding.on_stream_cancelled(reader.integer(6)?),
            _ => {
                let increment = reader.integer(6)?;
                self.outstanding
                    .on_increment(increment, self.table.insert_count())?;
            }
        }
        Ok(())
    }

    /// Takes bytes for our encoder stream, if there are any. Those of insertions are bounded by the table's capacity: no
    /// entry is evicted before the peer has received it.
    pub fn take_instructions(&mut self) -> Option<Bytes> {
        if self.instructions.is_empty() {
            return None;
        }
        Some(std::mem::take(&mut self.instructions).into())
    }
}
