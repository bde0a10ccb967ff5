//! Field sections with references to the dynamic table that the decoder has not acknowledged (RFC 9204, section 2.1.1),
//! and the streams that they may block (section 2.1.2).

use crate::qpack::error::Problem;
use crate::qpack::limits::OUTSTANDING_SECTIONS;
use std::collections::{BTreeMap, VecDeque};

/// The references of a section. Entries are evicted in order: the oldest reference limits which may
/// be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct References {
    /// One more than the newest entry.
    pub(super) required_insert_count: u64,
    /// The oldest entry.
    pub(super) oldest: u64,
}

/// All outstanding sections, and what the decoder is known to have received.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// By stream, in the order in which they were sent.
    streams: BTreeMap<u64, VecDeque<References>>,
    sections: usize,
    /// Sections by their oldest reference.
    oldest: BTreeMap<u64, usize>,
    /// Streams with a section that needs more than the Known Received Count; no more than the peer allows.
    at_risk: Vec<AtRisk>,
    known_received: u64,
}

/// A stream that may be blocked.
#[derive(Debug)]
struct AtRisk {
    stream_id: u64,
    /// The highest Required Insert Count of its sections.
    required_insert_count: u64,
}

impl Outstanding {
    /// The Known Received Count (RFC 9204, section 2.1.4).
    pub(super) fn known_received(&self) -> u64 {
        self.known_received
    }

    /// The oldest entry that an outstanding section refers to.
    pub(super) fn oldest_reference(&self) -> Option<u64> {
        self.oldest.first_key_value().map(|(&index, _)| index)
    }

    /// Whether another section may have references.
    pub(super) fn has_room(&self) -> bool {
        self.sections < OUTSTANDING_SECTIONS
    }

    /// Whether a section of this stream may refer to entries that are not acknowledged, with at most `limit` such streams.
    pub(super) fn may_block(&self, stream_id: u64, limit: u64) -> bool {
        (self.at_risk.len() as u64) < limit
            || self.at_risk.iter().any(|risk| risk.stream_id == stream_id)
    }

    /// Records a section.
    pub(super) fn on_sent(&mut self, stream_id: u64, section: References) {
        self.streams
            .entry(stream_id)
            .or_default()
            .push_back(section);
        self.sections += 1;
        *self.oldest.entry(section.oldest).or_default() += 1;
        let required_insert_count = section.required_insert_count;
        if required_insert_count <= self.known_received {
            return;
        }
        match self
            .at_risk
            .iter_mut()
            .find(|risk| risk.stream_id == stream_id)
        {
            Some(risk) => {
                risk.required_insert_count = risk.required_insert_count.max(required_insert_count);
            }
            None => self.at_risk.push(AtRisk {
                stream_id,
                required_insert_count,
            }),
        }
    }

    /// The decoder has processed the oldest section of a stream.
    pub(super) fn on_section_acknowledged(&mut self, stream_id: u64) -> Result<(), Problem> {
        let unknown = Problem::SectionAcknowledgment(stream_id);
        let sections = self.streams.get_mut(&stream_id).ok_or(unknown)?;
        let section = sections.pop_front().ok_or(unknown)?;
        if sections.is_empty() {
            self.streams.remove(&stream_id);
        }
        self.release(section);
        self.set_known_received(self.known_received.max(section.required_insert_count));
        Ok(())
    }

    /// The decoder will not process the remaining sections of a stream.
    pub(super) fn on_stream_cancelled(&mut self, stream_id: u64) {
        for section in self.streams.remove(&stream_id).into_iter().flatten() {
            self.release(section);
        }
        self.at_risk.retain(|risk| risk.stream_id != stream_id);
    }

    /// The decoder has received `increment` more insertions, of `insert_count` in all.
    pub(super) fn on_increment(
        &mut self,
        increment: u64,
        insert_count: u64,
    ) -> Result<(), Problem> {
        if increment == 0 || increment > insert_count - self.known_received {
            return Err(Problem::InsertCountIncrement(increment));
        }
        self.set_known_received(self.known_received + increment);
        Ok(())
    }

    fn set_known_received(&mut self, count: u64) {
        self.known_received = count;
        self.at_risk
            .retain(|risk| risk.required_insert_count > count);
    }

    fn release(&mut self, section: References) {
        self.sections -= 1;
        if let Some(count) = self.oldest.get_mut(&section.oldest) {
            *count -= 1;
            if *count == 0 {
                self.oldest.remove(&section.oldest);
            }
        }
    }
}
