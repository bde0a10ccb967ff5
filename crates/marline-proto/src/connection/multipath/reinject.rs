//! Nothing is left to send, but something is still on its way on a slow path: a faster one carries it, too
//! (XLINK: Zheng et al., SIGCOMM 2021).

use marline_wire::PathId;

use super::{Multipath, Seen};
use crate::connection::Connection;
use crate::connection::path::{Path, Stage};
use crate::connection::slots::Slot;
use crate::connection::token::Token;
use crate::scheduling::path::{Outstanding, PathView, Reinject, Reinjection, ReinjectionOrder};
use crate::spaces::Original;
use crate::time::Instant;

/// Who carries what once more.
#[derive(Clone, Copy, Debug)]
struct Copy {
    from: Slot,
    original: Original,
    to: Slot,
}

impl Connection {
    /// Queues a packet's worth of what other paths have on a path that may send now; returns that path.
    ///
    /// What waits for a path moves. What is on its way is copied once, within the budget.
    pub(in crate::connection) fn reinject(&mut self, now: Instant) -> Option<Slot> {
        if self.turns.ready().is_some() || self.paths.is_single() {
            return None;
        }
        let has_reinjection = |multipath: &mut Box<Multipath>| multipath.reinjection.is_some();
        let mut multipath = self.multipath.take_if(has_reinjection)?;
        let Multipath {
            reinjection, seen, ..
        } = &mut *multipath;
        seen.paths.clear();
        let live = self.paths.iter().filter(|path| path.is_live());
        seen.paths.extend(live.map(Path::view));
        let to = reinjection.as_mut().and_then(|reinjection| {
            reinjection.set_sent(self.streams.stats().bytes_sent);
            self.move_waiting(now, reinjection, seen)
                .or_else(|| self.copy(now, reinjection, seen))
        });
        self.multipath = Some(multipath);
        to
    }

    /// Moves a segment from the queue of a path to that of another by which it arrives earlier.
    fn move_waiting(
        &mut self,
        now: Instant,
        reinjection: &Reinjection,
        seen: &Seen,
    ) -> Option<Slot> {
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
            let Reinject::On(id) = reinjection.plan(now, &seen.paths, &waiting) else {
                continue;
            };
            let Some(to) = self.paths.by_id(id).filter(|&to| self.may_carry(now, to)) else {
                continue;
            };
            // The first leaves soon: only a shorter way is worth it.
            let rtt = |at: Slot| self.paths[at].recovery.rtt().smoothed();
            let is_shorter = rtt(to) < rtt(from);
            let queue = &mut self.paths[from].queue;
            let segment = match is_shorter {
                true => queue.take_first(),
                false => queue.take_last(),
            };
            if let Some(segment) = segment {
                self.streams.note_path(segment.id, id);
                self.paths[to].queue.push(segment);
                return Some(to);
            }
        }
        None
    }

    /// Copies a packet's worth of stream data for which that is of use.
    fn copy(
        &mut self,
        now: Instant,
        reinjection: &mut Reinjection,
        seen: &mut Seen,
    ) -> Option<Slot> {
        let mut first: Option<Copy> = None;
        for from in self.paths.slots() {
            if self.paths[from].stage != Stage::Open {
                continue;
            }
            let found = self.worth_copying(now, from, reinjection, &seen.paths);
            if let Some(copy) = found
                && first.is_none_or(|first| copy.original.sent_at < first.original.sent_at)
            {
                first = Some(copy);
            }
        }
        let Copy { from, original, to } = first?;
        if !self.may_carry(now, to) {
            return None;
        }
        let sent = &mut self.paths[from].space.sent;
        let tickets = sent.tickets(original.number);
        seen.segments.clear();
        seen.segments.extend(tickets.filter_map(Token::segment));
        sent.pass(original.number);
        for segment in &seen.segments {
            if let Some(copy) = self.streams.take_copy(segment) {
                reinjection.on_copied(copy.len as u64);
                self.paths[to].queue.push_copy(copy);
            }
        }
        Some(to)
    }

    /// Which packet of a path is to be copied first, if any is.
    fn worth_copying(
        &mut self,
        now: Instant,
        from: Slot,
        reinjection: &Reinjection,
        views: &[PathView],
    ) -> Option<Copy> {
        let judge = |this: &Self, original: Original| {
            let outstanding = Outstanding {
                path: this.paths[from].id,
                sent_at: Some(original.sent_at),
                bytes: this.in_flight_once(from, original)?,
            };
            Some(reinjection.plan(now, views, &outstanding))
        };
        if reinjection.order() == ReinjectionOrder::Ends {
            while let Some(original) = self.paths[from].space.sent.latest_to_copy() {
                match judge(self, original) {
                    None => self.paths[from].space.sent.pass(original.number),
                    Some(_) if !self.ends_streams(from, original) => break,
                    Some(Reinject::On(id)) => return self.copy_on(id, from, original),
                    // What left earlier arrives earlier.
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
        let tickets = self.paths[at].space.sent.tickets(original.number);
        let segments = tickets.filter_map(Token::segment);
        let singles = segments.filter_map(|segment| self.streams.in_flight_once(&segment));
        let bytes = singles.map(|single| single.len as u64);
        bytes.reduce(|sum, bytes| sum + bytes)
    }

    /// Whether the streams of a packet are sent to their end.
    fn ends_streams(&self, at: Slot, original: Original) -> bool {
        let tickets = self.paths[at].space.sent.tickets(original.number);
        let mut segments = tickets.filter_map(Token::segment);
        segments.all(|segment| self.streams.is_all_sent(segment.id))
    }

    /// Whether a path may send a packet now; if its pacer alone does not let it, it will be asked again.
    fn may_carry(&mut self, now: Instant, at: Slot) -> bool {
        let path = &mut self.paths[at];
        let active = &path.tuples.active;
        let bytes = active.mtu.current().into();
        active.may_send_data() && path.recovery.may_send(now, bytes)
    }
}
