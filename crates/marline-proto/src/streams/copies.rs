//! Bytes that are in flight twice, on two paths: either copy will do, and only the loss of both makes
//! them due again.

use super::{Segment, Streams};

impl Streams {
    /// What of a segment that was sent is neither acknowledged nor copied; if it comes in pieces, the
    /// first.
    pub(crate) fn in_flight_once(&self, segment: &Segment) -> Option<Segment> {
        let send = self.table.get(&segment.id)?.send.as_ref()?;
        let (range, fin) = send.in_flight_once(segment.range(), segment.fin)?;
        Some(Segment {
            id: segment.id,
            offset: range.start,
            len: (range.end - range.start) as usize,
            fin,
        })
    }

    /// Takes a copy of what [is in flight once](Self::in_flight_once) of a segment, to be sent too.
    pub(crate) fn take_copy(&mut self, segment: &Segment) -> Option<Segment> {
        let copy = self.in_flight_once(segment)?;
        let send = self.table.get_mut(&copy.id)?.send.as_mut()?;
        send.on_copied(copy.range(), copy.fin);
        Some(copy)
    }
}
