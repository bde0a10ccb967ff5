//! Bytes in flight twice, on two paths: one acknowledgment suffices, and they are due again only after
//! both copies are lost.

use super::{Segment, Streams};

impl Streams {
    /// The first part of a segment that is in flight exactly once.
    pub(crate) fn in_flight_once(&self, segment: &Segment) -> Option<Segment> {
        let send = self.table.get(&segment.id)?.send.as_ref()?;
        let part = send.in_flight_once(segment.part())?;
        Some(Segment::new(segment.id, &part))
    }

    /// Number of bytes of a segment that are in flight exactly once; `None` if nothing is to be copied, not even
    /// the FIN.
    pub(crate) fn bytes_in_flight_once(&self, segment: &Segment) -> Option<u64> {
        let send = self.table.get(&segment.id)?.send.as_ref()?;
        send.bytes_in_flight_once(segment.part())
    }

    /// Takes the first part of a segment that [is in flight once](Self::in_flight_once), to be sent a second time.
    pub(crate) fn take_copy(&mut self, segment: &Segment) -> Option<Segment> {
        let copy = self.in_flight_once(segment)?;
        let send = self.table.get_mut(&copy.id)?.send.as_mut()?;
        send.on_copied(copy.part());
        Some(copy)
    }
}
