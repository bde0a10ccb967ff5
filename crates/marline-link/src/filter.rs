//! Stages that take no time.

use crate::exit_queue::Out;
use crate::{DropReason, Exit, Link, Packet, Time};

/// Decides about packets one by one, the moment they come.
pub trait Guard: Send {
    /// Why `packet` goes no further; it may be changed on the way.
    fn inspect<B>(&mut self, now: Time, packet: &mut Packet<B>) -> Option<DropReason>;
}

/// A link that passes or drops packets at once, as its guard says.
pub struct Gate<B, G> {
    guard: G,
    out: Out<B>,
}

impl<B, G> Gate<B, G> {
    /// A gate kept by `guard`.
    pub const fn new(guard: G) -> Self {
        Self {
            guard,
            out: Out::new(),
        }
    }
}

impl<B: Send, G: Guard> Link<B> for Gate<B, G> {
    fn push(&mut self, now: Time, mut packet: Packet<B>) {
        let dropped = self.guard.inspect(now, &mut packet);
        self.out.push(Exit {
            at: now,
            packet,
            dropped,
        });
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.out.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.out.next_event()
    }
}
