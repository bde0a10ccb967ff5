//! The interface of links.

use std::fmt;

use crate::{Packet, Time};

/// Carries packets in one direction.
///
/// The caller calls [`push`](Self::push) for each arriving packet, and [`pop`](Self::pop) until it
/// returns `None`, both after each `push` and whenever [`next_event`](Self::next_event) is due. Times
/// never decrease.
///
/// Late polling changes nothing: at `now` a link processes everything that was due by then at its own
/// time, which [`Exit::at`] records. Results depend on the seed, the packets and their arrival times,
/// not on when the link was polled.
pub trait Link<B>: Send {
    /// Handles the arrival of a packet at `now`.
    fn push(&mut self, now: Time, packet: Packet<B>);

    /// The next packet that left or was dropped by `now`, in time order.
    fn pop(&mut self, now: Time) -> Option<Exit<B>>;

    /// Time of the next call of [`pop`](Self::pop): a packet may leave then, or the link's state
    /// changes. `None` if nothing happens until the next packet arrives.
    fn next_event(&self) -> Option<Time>;

    /// Bytes queued for transmission; packets in transit do not count.
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

/// The departure of a packet from a link: it arrives at the other end or is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit<B> {
    /// Departure time.
    pub at: Time,
    /// The packet.
    pub packet: Packet<B>,
    /// Reason of the drop; `None` if it arrived.
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

    /// `packet` is dropped at `at`.
    pub const fn dropped(at: Time, packet: Packet<B>, reason: DropReason) -> Self {
        Self {
            at,
            packet,
            dropped: Some(reason),
        }
    }
}

/// The reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it before the queue was full.
    QueueManagement,
    /// It exceeded the rate of a policer.
    Policed,
    /// Random loss of the link.
    Loss,
    /// The radio reached its retry limit.
    RadioRetries,
    /// It is larger than the link's MTU.
    TooLarge,
    /// The link is down.
    LinkDown,
    /// There is no route to its destination.
    NoRoute,
    /// A NAT has no mapping for its port.
    NoMapping,
}

impl DropReason {
    /// A short name, for captures and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::QueueManagement => "queue management",
            Self::Policed => "policer",
            Self::Loss => "random loss",
            Self::RadioRetries => "radio retries exhausted",
            Self::TooLarge => "larger than the MTU",
            Self::LinkDown => "link down",
            Self::NoRoute => "no route",
            Self::NoMapping => "no NAT mapping",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
