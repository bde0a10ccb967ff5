//! Reinjection: when nothing is left to send, a faster path sends again what is still in flight on a slow one
//! (XLINK: Zheng et al., SIGCOMM 2021).

use marline_wire::PathId;

use crate::paths::{PathList, Slot};
use crate::scheduling::path::{Outstanding, PathView, Reinject, Reinjection, ReinjectionOrder};
use crate::spaces::Original;
use crate::streams::{Segment, Streams};
use crate::time::Instant;
use crate::token::Token;

/// A packet whose stream data another path is to send again.
#[derive(Clone, Copy, Debug)]
struct Copy {
    from: Slot,
    original: Original,
    to: Slot,
}

/// Looks for data that another path should send as well.
pub(super) struct Reinjector<'a> {
    pub(super) now: Instant,
    pub(super) paths: &'a mut PathList,
    pub(super) streams: &'a mut Streams,
    pub(super) reinjection: &'a mut Reinjection,
    /// The open paths that are not suspected.
    pub(super) views: &'a [PathView],
    /// Buffer of the segments to be copied.
    pub(super) segments: &'a mut Vec<Segment>,
}

impl Reinjector<'_> {
    /// Queues a packet of what other paths have on a path that may send now; returns that path.
    ///
    /// Moves the bytes queued on a path. Bytes in flight are copied once, within the budget.
    pub(super) fn run(&mut self) -> Option<Slot> {
        self.move_waiting().or_else(|| self.copy())
    }

    /// Queues a copy of the oldest packet of another path on `to`, which may send now, if that packet
    /// [is late](Reinjection::is_late).
    pub(super) fn copy_late(&mut self, to: Slot) {
        let id = self.paths[to].id;
        for from in self.paths.slots() {
            if from == to || !self.paths[from].is_live() {
                continue;
            }
            while let Some(original) = self.paths[from].space.sent.oldest_to_copy() {
                let Some(bytes) = self.in_flight_once(from, original) else {
                    self.paths[from].space.sent.pass(original.number);
                    continue;
                };
                let oldest = Outstanding {
                    path: self.paths[from].id,
                    sent_at: Some(original.sent_at),
                    bytes,
                };
                if self.reinjection.is_late(self.now, self.views, &oldest, id) {
                    self.queue_copy(&Copy { from, original, to });
                    return;
                }
                break;
            }
        }
    }

    /// Moves a segment from the queue of a path to that of another by which it arrives earlier.
    fn move_waiting(&mut self) -> Option<Slot> {
        for from in self.paths.slots() {
            let path = &self.paths[from];
            let waiting = Outstanding {
                path: path.id,
                sent_at: None,
                bytes: path.queue.bytes(),
            };
            if path.queue.is_empty() {
                continue;
            }
            let Reinject::On(id) = self.reinjection.plan(self.now, self.views, &waiting) else {
                continue;
            };
            let Some(to) = self.paths.by_id(id).filter(|&to| self.may_carry(to)) else {
                continue;
            };
            // The first of the queue is sent soon: only a path with a shorter round trip delivers it earlier.
            let rtt = |at: Slot| self.paths[at].recovery.rtt().smoothed();
            let is_shorter = rtt(to) < rtt(from);
            let queue = &mut self.paths[from].queue;
            let segment = match is_shorter {
                true => queue.take_first(),
                false => queue.take_last(),
            };
            if let Some(segment) = segment {
                self.streams.set_path(segment.id, id);
                self.paths[to].queue.push(segment);
                return Some(to);
            }
        }
        None
    }

    /// Copies the stream data of one packet in flight, if that is useful.
    fn copy(&mut self) -> Option<Slot> {
        let mut first: Option<Copy> = None;
        for from in self.paths.slots() {
            if !self.paths[from].is_open() {
                continue;
            }
            let found = self.worth_copying(from);
            if let Some(copy) = found
                && first.is_none_or(|first| copy.original.sent_at < first.original.sent_at)
            {
                first = Some(copy);
            }
        }
        let first = first?;
        if !self.may_carry(first.to) {
            return None;
        }
        self.queue_copy(&first);
        Some(first.to)
    }

    /// Queues what a packet carries and no other copy does.
    fn queue_copy(&mut self, copy: &Copy) {
        let &Copy { from, original, to } = copy;
        let sent = &mut self.paths[from].space.sent;
        let tokens = sent.tokens_of(original.number);
        self.segments.clear();
        self.segments.extend(tokens.filter_map(Token::segment));
        sent.pass(original.number);
        for segment in &*self.segments {
            // An acknowledged piece in the middle leaves two.
            while let Some(copy) = self.streams.take_copy(segment) {
                self.reinjection.on_copied(copy.len as u64);
                self.paths[to].queue.push_copy(copy);
            }
        }
    }

    /// Which packet of a path is to be copied first, if any is.
    fn worth_copying(&mut self, from: Slot) -> Option<Copy> {
        let judge = |this: &Self, original: Original| {
            let outstanding = Outstanding {
                path: this.paths[from].id,
                sent_at: Some(original.sent_at),
                bytes: this.in_flight_once(from, original)?,
            };
            Some(this.reinjection.plan(this.now, this.views, &outstanding))
        };
        if self.reinjection.order() == ReinjectionOrder::Ends {
            while let Some(original) = self.paths[from].space.sent.latest_to_copy() {
                match judge(self, original) {
                    None => self.paths[from].space.sent.pass(original.number),
                    Some(_) if !self.ends_streams(from, original) => break,
                    Some(Reinject::On(id)) => return self.copy_on(id, from, original),
                    // Packets sent earlier arrive earlier.
                    Some(Reinject::Never | Reinject::NotNow) => return None,
                }
            }
        }
        while let Some(original) = self.paths[from].space.sent.oldest_to_copy() {
            match judge(self, original) {
                Some(Reinject::On(id)) => return self.copy_on(id, from, original),
                Some(Reinject::NotNow) => return None,
                Some(Reinject::Never) | None => {
                    self.paths[from].space.sent.pass(original.number);
                }
            }
        }
        None
    }

    fn copy_on(&self, id: PathId, from: Slot, original: Original) -> Option<Copy> {
        let to = self.paths.by_id(id)?;
        Some(Copy { from, original, to })
    }

    /// Stream data of a packet that is neither acknowledged nor copied, in bytes; `None` if there is none.
    fn in_flight_once(&self, at: Slot, original: Original) -> Option<u64> {
        let tokens = self.paths[at].space.sent.tokens_of(original.number);
        let segments = tokens.filter_map(Token::segment);
        let bytes = segments.filter_map(|segment| self.streams.bytes_in_flight_once(&segment));
        bytes.reduce(|sum, bytes| sum + bytes)
    }

    /// Whether the streams of a packet are sent to their end.
    fn ends_streams(&self, at: Slot, original: Original) -> bool {
        let tokens = self.paths[at].space.sent.tokens_of(original.number);
        let mut segments = tokens.filter_map(Token::segment);
        segments.all(|segment| self.streams.is_all_sent(segment.id))
    }

    /// Whether a path may send a packet now; if its pacer alone prevents it, its timer will fire.
    fn may_carry(&mut self, at: Slot) -> bool {
        let path = &mut self.paths[at];
        let bytes = path.tuples.active.mtu.current().into();
        path.may_send_data() && path.recovery.may_send(self.now, bytes)
    }
}
