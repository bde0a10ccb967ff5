//! The decoder (RFC 9204, section 2.2).

mod blocked;
mod instruction;
mod section;
#[cfg(test)]
mod tests;

use super::error::{Error, Problem};
use super::field::{self, FieldLine};
use super::huffman::DecodeError;
use super::integer;
use super::limits::ENTRY_OVERHEAD;
use super::reader::{Literal, ReadError, Reader};
use super::static_table;
use super::table::Table;
use blocked::BlockedStreams;
use bytes::Bytes;
use instruction::Instruction;
use section::{Lines, Section};

/// The limits of a decoder for its peer. The first two are announced in SETTINGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderLimits {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY, in bytes: the most that the dynamic table holds.
    pub table_capacity: u64,
    /// SETTINGS_QPACK_BLOCKED_STREAMS: streams that may wait for insertions at a time.
    pub blocked_streams: u64,
    /// Size in bytes of a decoded section, as SETTINGS_MAX_FIELD_SECTION_SIZE counts it; larger ones are
    /// [`Decoded::TooLarge`].
    pub max_field_section_size: u64,
    /// Bytes of the sections of blocked streams, 64 more for each section. Should hold `blocked_streams` sections of the
    /// size that the layer above accepts: beyond it, the connection is closed.
    pub blocked_bytes: usize,
}

/// The outcome of decoding a field section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Its field lines, in order.
    Fields(Vec<FieldLine>),
    /// It needs insertions that have not arrived. [`Decoder::poll_unblocked`] returns the rest.
    Blocked,
    /// It is larger than [`DecoderLimits::max_field_section_size`]; the rest of it was not decoded.
    TooLarge,
}

/// A section that was [`Decoded::Blocked`] before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unblocked {
    /// The stream on which it arrived.
    pub stream_id: u64,
    /// The result of [`Decoder::decode`] for the section; not [`Decoded::Blocked`].
    pub result: Result<Decoded, Error>,
}

/// Decodes the field sections of a peer.
///
/// All errors are connection errors; no call is useful after one. The instructions that accumulate for the decoder
/// stream are a few bytes for each section and each cancelled stream: the layer above limits how many of those a peer
/// causes before it takes the instructions.
#[derive(Debug)]
pub struct Decoder {
    limits: DecoderLimits,
    table: Table,
    blocked: BlockedStreams,
    /// The Known Received Count of the peer's encoder, as far as our instructions make it.
    known_received: u64,
    /// The beginning of an instruction whose end has not arrived. Bounded: strings above the capacity are refused as soon
    /// as their length is known.
    unfinished: Vec<u8>,
    instructions: Vec<u8>,
}

impl Decoder {
    /// A decoder with an empty table.
    pub fn new(limits: DecoderLimits) -> Self {
        Self {
            limits,
            table: Table::default(),
            blocked: BlockedStreams::new(limits.blocked_streams, limits.blocked_bytes),
            known_received: 0,
            unfinished: Vec::new(),
            instructions: Vec::new(),
        }
    }

    /// Processes bytes of the peer's encoder stream, cut anywhere. Sections may be unblocked then.
    ///
    /// # Errors
    ///
    /// [`Error::EncoderStream`] if an instruction is wrong.
    pub fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.unfinished.is_empty() {
            let read = self.execute(bytes)?;
            self.unfinished.extend_from_slice(&bytes[read..]);
            return Ok(());
        }
        let mut unfinished = std::mem::take(&mut self.unfinished);
        unfinished.extend_from_slice(bytes);
        let read = self.execute(&unfinished)?;
        if read < unfinished.len() {
            unfinished.drain(..read);
            self.unfinished = unfinished;
        }
        Ok(())
    }

    /// Executes the complete instructions of `bytes`. Returns how many bytes they take.
    fn execute(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut reader = Reader::new(bytes);
        let mut read = 0;
        while reader.peek().is_some() {
            let limit = self.table.capacity().saturating_sub(ENTRY_OVERHEAD);
            match Instruction::read(&mut reader, limit) {
                Ok(instruction) => self.apply(instruction).map_err(Error::EncoderStream)?,
                Err(ReadError::Truncated) => break,
                Err(ReadError::Invalid(problem)) => return Err(Error::EncoderStream(problem)),
            }
            read = bytes.len() - reader.rest().len();
        }
        Ok(read)
    }

    fn apply(&mut self, instruction: Instruction<'_>) -> Result<(), Problem> {
        match instruction {
            Instruction::SetCapacity(capacity) => {
                if capacity > self.limits.table_capacity {
                    return Err(Problem::Capacity(capacity));
                }
                let capacity =
                    usize::try_from(capacity).map_err(|_| Problem::Capacity(capacity))?;
                self.table.set_capacity(capacity);
                Ok(())
            }
            Instruction::InsertWithStaticName { index, value } => {
                let line = static_table::get(index).ok_or(Problem::StaticIndex(index))?;
                self.insert(Bytes::from_static(line.name.as_bytes()), value)
            }
            Instruction::InsertWithDynamicName { relative, value } => {
                let name = self.relative(relative)?.name.clone();
                self.insert(name, value)
            }
            Instruction::InsertWithLiteralName { name, value } => {
                let name = self.string(name, 0)?;
                self.insert(name, value)
            }
            Instruction::Duplicate { relative } => {
                let entry = self.relative(relative)?;
                let (name, value) = (entry.name.clone(), entry.value.clone());
                // It was inserted below this capacity, or survived a change to it.
                self.table.insert(name, value);
                Ok(())
            }
        }
    }

    fn insert(&mut self, name: Bytes, value: Literal<'_>) -> Result<(), Problem> {
        let value = self.string(value, name.len())?;
        self.table.insert(name, value);
        Ok(())
    }

    /// A copy of the string that shares no memory with the input; with `others` more bytes it fits the table.
    fn string(&self, literal: Literal<'_>, others: usize) -> Result<Bytes, Problem> {
        let limit = self
            .table
            .capacity()
            .checked_sub(field::size(others, 0))
            .ok_or(Problem::EntryTooLarge)?;
        let mut string = Vec::new();
        match literal.decode_into(limit, &mut string) {
            Ok(()) => Ok(string.into_boxed_slice().into()),
            Err(DecodeError::TooLong) => Err(Problem::EntryTooLarge),
            Err(DecodeError::Invalid(problem)) => Err(problem),
        }
    }

    /// The entry at an index relative to the Insert Count (RFC 9204, section 3.2.5).
    fn relative(&self, relative: u64) -> Result<&super::table::Entry, Problem> {
        self.table
            .insert_count()
            .checked_sub(relative)
            .and_then(|index| self.table.get(index.checked_sub(1)?))
            .ok_or(Problem::DynamicIndex(relative))
    }

    /// Decodes a section that arrived on `stream_id`. Its plain strings share its memory.
    ///
    /// While a section of a stream is blocked, later ones of the same stream are, too, so that they keep their order.
    ///
    /// # Errors
    ///
    /// [`Error::DecompressionFailed`] if the section is wrong, or blocks more than the limits allow.
    pub fn decode(&mut self, stream_id: u64, section: Bytes) -> Result<Decoded, Error> {
        let insert_count = self.table.insert_count();
        let max_entries = self.limits.table_capacity / ENTRY_OVERHEAD as u64;
        let section = Section::read(section, insert_count, max_entries)
            .map_err(Error::DecompressionFailed)?;
        if section.required_insert_count() > insert_count || self.blocked.contains(stream_id) {
            self.blocked
                .push(stream_id, section)
                .map_err(Error::DecompressionFailed)?;
            return Ok(Decoded::Blocked);
        }
        self.finish(stream_id, &section)
    }

    /// The next section that waits no longer.
    pub fn poll_unblocked(&mut self) -> Option<Unblocked> {
        let ready = self.blocked.pop_ready(self.table.insert_count())?;
        Some(Unblocked {
            stream_id: ready.stream_id,
            result: self.finish(ready.stream_id, &ready.section),
        })
    }

    /// Decodes a section that is not blocked, and acknowledges it.
    fn finish(&mut self, stream_id: u64, section: &Section) -> Result<Decoded, Error> {
        let lines = section
            .decode(&self.table, self.limits.max_field_section_size)
            .map_err(Error::DecompressionFailed)?;
        // A section that is too large has been processed as well: its references are no longer
        // outstanding.
        let required = section.required_insert_count();
        if required > 0 {
            integer::encode(stream_id, 7, 0x80, &mut self.instructions);
            self.known_received = self.known_received.max(required);
        }
        Ok(match lines {
            Lines::Fields(fields) => Decoded::Fields(fields),
            Lines::TooLarge => Decoded::TooLarge,
        })
    }

    /// Drops the blocked sections of a stream that was reset, or that the layer above stops reading, before all its
    /// sections were decoded (RFC 9204, section 2.2.2.2). No section of this stream may be decoded afterwards.
    pub fn on_stream_cancelled(&mut self, stream_id: u64) {
        self.blocked.remove(stream_id);
        // Without a table there are no references to release.
        if self.limits.table_capacity > 0 {
            integer::encode(stream_id, 6, 0x40, &mut self.instructions);
        }
    }

    /// Takes bytes for our decoder stream, if there are any. Insertions that no section acknowledged are reported here
    /// (RFC 9204, section 4.4.3), all at once: less often is cheaper, more often lets the peer use them sooner.
    pub fn take_instructions(&mut self) -> Option<Bytes> {
        let increment = self.table.insert_count() - self.known_received;
        if increment > 0 {
            integer::encode(increment, 6, 0, &mut self.instructions);
            self.known_received += increment;
        }
        if self.instructions.is_empty() {
            return None;
        }
        Some(std::mem::take(&mut self.instructions).into())
    }
}
