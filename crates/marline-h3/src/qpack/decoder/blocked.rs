//! Sections that wait for insertions (RFC 9204, section 2.2.1).

use super::section::Section;
use crate::qpack::error::Problem;
use crate::qpack::limits::BLOCKED_SECTION_OVERHEAD;
use std::collections::{BTreeMap, VecDeque};

/// The sections of blocked streams, and of each in the order of arrival.
#[derive(Debug)]
pub(super) struct BlockedStreams {
    streams: BTreeMap<u64, VecDeque<Section>>,
    bytes: usize,
    max_streams: u64,
    max_bytes: usize,
}

/// A section that waits no longer.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) stream_id: u64,
    pub(super) section: Section,
}

impl BlockedStreams {
    pub(super) fn new(max_streams: u64, max_bytes: usize) -> Self {
        Self {
            streams: BTreeMap::new(),
            bytes: 0,
            max_streams,
            max_bytes,
        }
    }

    pub(super) fn contains(&self, stream_id: u64) -> bool {
        self.streams.contains_key(&stream_id)
    }

    pub(super) fn push(&mut self, stream_id: u64, section: Section) -> Result<(), Problem> {
        if !self.contains(stream_id) && self.streams.len() as u64 >= self.max_streams {
            return Err(Problem::TooManyBlockedStreams);
        }
        let bytes = self.bytes + cost(&section);
        if bytes > self.max_bytes {
            return Err(Problem::TooManyBlockedBytes);
        }
        self.bytes = bytes;
        self.streams
            .entry(stream_id)
            .or_default()
            .push_back(section);
        Ok(())
    }

    /// Takes a section that needs no more than `insert_count`, the first of its stream.
    pub(super) fn pop_ready(&mut self, insert_count: u64) -> Option<Ready> {
        let stream_id = self.streams.iter().find_map(|(&stream_id, sections)| {
            let first = sections.front()?;
            (first.required_insert_count() <= insert_count).then_some(stream_id)
        })?;
        let sections = self.streams.get_mut(&stream_id)?;
        let section = sections.pop_front()?;
        if sections.is_empty() {
            self.streams.remove(&stream_id);
        }
        self.bytes -= cost(&section);
        Some(Ready { stream_id, section })
    }

    /// Drops the sections of a stream.
    pub(super) fn remove(&mut self, stream_id: u64) {
        for section in self.streams.remove(&stream_id).into_iter().flatten() {
            self.bytes -= cost(&section);
        }
    }
}

fn cost(section: &Section) -> usize {
    section.len().saturating_add(BLOCKED_SECTION_OVERHEAD)
}
