//! Flow control limits (RFC 9000, section 4).

use crate::time::Instant;
use marline_wire::varint;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The flow control window that we grant the peer, on a stream or on all together.
///
/// A new limit is advertised when half of the window is used; if that took less than two round trips, the
/// peer may be waiting for credit, and the window doubles up to its ceiling.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    /// Maximum number of bytes in flight or unread.
    size: u64,
    ceiling: u64,
    /// Bytes read or dropped so far.
    consumed: u64,
    /// Largest advertised limit.
    advertised: u64,
    /// Start of the use of the present window.
    since: Option<Instant>,
}

impl ReceiveWindow {
    /// A window of `size` bytes, which the peer knows from the transport parameters, that may grow to
    /// `ceiling` bytes.
    pub(super) const fn new(size: u64, ceiling: u64) -> Self {
        Self {
            size,
            ceiling,
            consumed: 0,
            advertised: size,
            since: None,
        }
    }

    /// The advertised limit, in bytes since the start.
    pub(super) const fn advertised(&self) -> u64 {
        self.advertised
    }

    /// Bytes read or dropped so far.
    pub(super) const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Present size, in bytes.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Adds `bytes` that were read or dropped. Returns whether to advertise a new limit.
    pub(super) fn consume(&mut self, bytes: u64) -> bool {
        self.consumed += bytes;
        self.limit() - self.advertised >= (self.size / 2).max(1)
    }

    /// Grows the window if it was used quickly; to be called before a new limit is advertised.
    pub(super) fn tune(&mut self, now: Instant, rtt: Duration) {
        if self.since.is_some_and(|since| now - since < rtt * 2) {
            self.size = self.size.saturating_mul(2).min(self.ceiling).max(self.size);
        }
        self.since = Some(now);
    }

    /// Records the start of the use of the window, unless recorded already.
    pub(super) fn start(&mut self, now: impl Fn() -> Instant) {
        self.since.get_or_insert_with(now);
    }

    /// Grows the window to `size` bytes, up to the ceiling.
    pub(super) fn grow_to(&mut self, size: u64) {
        self.size = self.size.max(size.min(self.ceiling));
    }

    /// The limit that could be advertised now.
    pub(super) fn limit(&self) -> u64 {
        self.consumed
            .saturating_add(self.size)
            .min(varint::MAX)
            .max(self.advertised)
    }

    /// Raises the advertised limit as far as possible, and returns it.
    pub(super) fn advertise(&mut self) -> u64 {
        self.advertised = self.limit();
        self.advertised
    }
}

/// The peer's flow control limit on all streams together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendCredit {
    /// Bytes permitted since the start.
    pub(super) max_data: u64,
    /// Bytes sent for the first time so far.
    pub(super) sent: u64,
    /// Limit in the last DATA_BLOCKED.
    pub(super) blocked_at: Option<u64>,
}

impl SendCredit {
    /// Number of new bytes that may be sent.
    pub(super) const fn left(&self) -> u64 {
        self.max_data - self.sent
    }

    /// Raises the limit; returns whether it had blocked sending.
    pub(super) fn raise(&mut self, max_data: u64) -> bool {
        let was_blocked = self.left() == 0 && max_data > self.max_data;
        self.max_data = self.max_data.max(max_data);
        was_blocked
    }
}

/// The memory for written data, shared by all streams.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    /// Bytes kept until acknowledged.
    held: u64,
    /// Limit on bytes held, at which writes stop.
    limit: u64,
}

impl WriteBuffer {
    pub(super) const fn new(limit: u64) -> Self {
        Self { held: 0, limit }
    }

    /// Bytes kept until acknowledged.
    pub(super) const fn held(&self) -> u64 {
        self.held
    }

    /// Number of bytes that may be written.
    pub(super) const fn room(&self) -> u64 {
        self.limit.saturating_sub(self.held)
    }

    /// Whether blocked writers should be notified: an eighth of the limit avoids waking them for a few bytes at a time.
    pub(super) const fn has_worthwhile_room(&self) -> bool {
        self.room() > self.limit / 8
    }

    /// Updates the total after a stream that held `before` bytes holds `after`.
    pub(super) const fn update(&mut self, before: u64, after: u64) {
        self.held = self.held - before + after;
    }
}
