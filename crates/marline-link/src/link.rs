//! One way.

use std::fmt;

use crate::{Packet, Time};

/// Carries packets one way.
///
/// The caller calls [`push`](Self::push) as packets come, and [`pop`](Self::pop) until it gives nothing
/// after each `push` and whenever [`next_event`](Self::next_event) is due. Times never go back.
///
/// A caller that is late changes nothing: a link does at `now` all that was due by then, each at its
/// own moment, and says so in [`Exit::at`]. So decisions depend on the seed, on the packets and on when
/// they were pushed, not on when the link was looked at.
pub trait Link<B>: Send {
    /// A packet arrives at the link.
    fn push(&mut self, now: Time, packet: Packet<B>);

    /// The next packet that left, or was dropped, by `now`; exits come in the order of their times.
    fn pop(&mut self, now: Time) -> Option<Exit<B>>;

    /// When [`pop`](Self::pop) may have something, or has to be called because the link moves on;
    /// `None` if nothing happens unless a packet comes.
    fn next_event(&self) -> Option<Time>;

    /// Bytes that wait for their turn to be sent; packets that are merely under way do not count.
    fn queued_bytes(&self) -> u64 {
        0
    }
}

impl<B, L: Link<B> + ?Sized> Link<B> for Box<L> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        (**self).push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        (**self).pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        (**self).next_event()
    }

    fn queued_bytes(&self) -> u64 {
        (**self).queued_bytes()
    }
}

/// A packet comes to the end of a link, or to its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit<B> {
    /// When.
    pub at: Time,
    /// The packet.
    pub packet: Packet<B>,
    /// Why it goes no further; `None` if it arrived.
    pub dropped: Option<DropReason>,
}

impl<B> Exit<B> {
    /// `packet` arrives at `at`.
    pub const fn arrived(at: Time, packet: Packet<B>) -> Self {
        Self {
            at,
            packet,
            dropped: None,
        }
    }

    /// `packet` is lost at `at`.
    pub const fn dropped(at: Time, packet: Packet<B>, reason: DropReason) -> Self {
        Self {
            at,
            packet,
            dropped: Some(reason),
        }
    }
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The queue's active management dropped it before the queue was full.
    QueueManagement,
    /// The random loss of the link.
    Loss,
    /// The radio gave up after its last try.
    RadioRetries,
    /// It is larger than the link's MTU.
    TooLarge,
    /// The link is switched off at that time.
    LinkDown,
    /// No link leads to its destination.
    NoRoute,
}

impl DropReason {
    /// In a few words, for captures and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::QueueManagement => "queue management",
            Self::Loss => "random loss",
            Self::RadioRetries => "radio retries exhausted",
            Self::TooLarge => "larger than the MTU",
            Self::LinkDown => "link down",
            Self::NoRoute => "no route",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
