//! A circular list of streams with removal at any position.

use marline_wire::StreamId;
use slab::Slab;

/// Streams that take turns. All operations take constant time, without allocations up to the largest earlier size.
#[derive(Debug, Default)]
pub(super) struct Ring {
    seats: Slab<RingEntry>,
    head: Option<usize>,
}

#[derive(Debug)]
struct RingEntry {
    id: StreamId,
    prev: usize,
    next: usize,
}

impl Ring {
    /// The stream whose turn it is.
    pub(super) fn head(&self) -> Option<StreamId> {
        self.head.map(|seat| self.seats[seat].id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// All streams in order, from the head on.
    pub(super) fn iter(&self) -> impl Iterator<Item = StreamId> {
        let mut next = self.head;
        std::iter::from_fn(move || {
            let seat = &self.seats[next?];
            next = Some(seat.next).filter(|next| self.head != Some(*next));
            Some(seat.id)
        })
    }

    /// Adds `id` as the last one; returns the index of its seat.
    pub(super) fn push(&mut self, id: StreamId) -> usize {
        let entry = self.seats.vacant_entry();
        let seat = entry.key();
        let Some(head) = self.head else {
            entry.insert(RingEntry {
                id,
                prev: seat,
                next: seat,
            });
            self.head = Some(seat);
            return seat;
        };
        entry.insert(RingEntry {
            id,
            prev: seat,
            next: head,
        });
        let last = std::mem::replace(&mut self.seats[head].prev, seat);
        self.seats[seat].prev = last;
        self.seats[last].next = seat;
        seat
    }

    /// Removes the stream at `seat`, an index that [`push`](Self::push) returned; if it was the head, the next
    /// stream becomes the head.
    pub(super) fn remove(&mut self, seat: usize) {
        let RingEntry { prev, next, .. } = self.seats.remove(seat);
        if next == seat {
            self.head = None;
            return;
        }
        self.seats[prev].next = next;
        self.seats[next].prev = prev;
        if self.head == Some(seat) {
            self.head = Some(next);
        }
    }

    /// Ends the head's turn.
    pub(super) fn rotate(&mut self) {
        self.head = self.head.map(|seat| self.seats[seat].next);
    }
}
