//! Counters and limits of streams by direction (RFC 9000, sections 2.1 and 4.6).

use marline_wire::frame::MAX_STREAMS;
use marline_wire::{Dir, ErrorCode, Side, StreamId, TransportError};
use std::ops::Range;

/// Streams of one direction opened by this end.
#[derive(Clone, Copy, Debug, Default)]
struct Local {
    /// Number of streams opened.
    opened: u64,
    /// Number of streams permitted by the peer.
    max: u64,
    /// Whether the application tried to open a stream beyond `max`.
    wanted: bool,
    /// Limit in the last STREAMS_BLOCKED.
    blocked_at: Option<u64>,
}

/// Streams of one direction opened by the peer.
#[derive(Clone, Copy, Debug)]
struct Remote {
    /// Number of streams opened.
    opened: u64,
    /// Number of streams accepted by the application.
    accepted: u64,
    /// Number of closed streams.
    closed: u64,
    /// Maximum number of open streams.
    concurrent: u64,
    /// Largest advertised limit.
    advertised: u64,
}

impl Remote {
    const fn new(concurrent: u64) -> Self {
        Self {
            opened: 0,
            accepted: 0,
            closed: 0,
            concurrent,
            advertised: concurrent,
        }
    }

    fn limit(&self) -> u64 {
        (self.closed + self.concurrent).min(MAX_STREAMS)
    }
}

/// The counters of all four kinds of streams.
///
/// A stream below its counter that is not in the table is closed.
#[derive(Debug)]
pub(super) struct StreamIds {
    side: Side,
    local: [Local; 2],
    remote: [Remote; 2],
}

impl StreamIds {
    pub(super) const fn new(side: Side, max_remote: [u64; 2]) -> Self {
        let none = Local {
            opened: 0,
            max: 0,
            wanted: false,
            blocked_at: None,
        };
        Self {
            side,
            local: [none; 2],
            remote: [Remote::new(max_remote[0]), Remote::new(max_remote[1])],
        }
    }

    pub(super) fn is_local(&self, id: StreamId) -> bool {
        id.initiator() == self.side
    }

    /// Whether this end may send on the stream: not if it opened it in 0-RTT under a limit that no longer applies.
    pub(super) fn is_permitted(&self, id: StreamId) -> bool {
        !self.is_local(id) || id.index() < self.local[id.dir() as usize].max
    }

    /// Opens the next stream, if the peer's limit permits.
    pub(super) fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let local = &mut self.local[dir as usize];
        if local.opened >= local.max {
            local.wanted = true;
            return None;
        }
        let id = StreamId::new(self.side, dir, local.opened);
        local.opened += 1;
        Some(id)
    }

    /// The limit for STREAMS_BLOCKED, if the application waits and that limit was not sent yet.
    pub(super) fn blocked(&mut self, dir: Dir) -> Option<u64> {
        let local = &mut self.local[dir as usize];
        let is_new = local.wanted && local.blocked_at != Some(local.max);
        local.blocked_at = Some(local.max);
        is_new.then_some(local.max)
    }

    /// Whether the application still waits for a stream at `limit`.
    pub(super) fn is_blocked_at(&self, dir: Dir, limit: u64) -> bool {
        let local = &self.local[dir as usize];
        local.wanted && local.max == limit
    }

    /// Handles MAX_STREAMS. Returns whether the application waited for it.
    pub(super) fn on_max_streams(&mut self, dir: Dir, max: u64) -> bool {
        let local = &mut self.local[dir as usize];
        local.max = local.max.max(max);
        local.wanted && local.opened < local.max && std::mem::take(&mut local.wanted)
    }

    /// Number of streams that the peer permits.
    pub(super) fn max_local(&self, dir: Dir) -> u64 {
        self.local[dir as usize].max
    }

    /// Number of streams that this end has opened.
    pub(super) fn opened(&self, dir: Dir) -> u64 {
        self.local[dir as usize].opened
    }

    /// Whether either end ever opened a stream.
    pub(super) fn had_any(&self, dir: Dir) -> bool {
        self.local[dir as usize].opened > 0 || self.remote[dir as usize].opened > 0
    }

    /// Drops the remembered limits of the peer, because 0-RTT was rejected.
    pub(super) fn forget_limits(&mut self) {
        for local in &mut self.local {
            local.max = 0;
            local.blocked_at = None;
        }
    }

    /// The next stream that the peer opened and the application has not accepted.
    pub(super) fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let remote = &mut self.remote[dir as usize];
        let index = remote.accepted;
        (index < remote.opened).then(|| {
            remote.accepted += 1;
            StreamId::new(self.side.peer(), dir, index)
        })
    }

    /// Checks the stream of a received frame. Returns the indices of the streams that the frame opens.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR for a local stream that is not open yet, STREAM_LIMIT_ERROR beyond the
    /// limit.
    pub(super) fn on_frame_for(&mut self, id: StreamId) -> Result<Range<u64>, TransportError> {
        let dir = id.dir() as usize;
        if self.is_local(id) {
            if id.index() < self.local[dir].opened {
                return Ok(0..0);
            }
            return Err(TransportError::new(
                ErrorCode::STREAM_STATE_ERROR,
                "a frame for a stream that is not open yet",
            ));
        }
        let remote = &mut self.remote[dir];
        if id.index() >= remote.advertised {
            return Err(TransportError::new(
                ErrorCode::STREAM_LIMIT_ERROR,
                "more streams than the limit",
            ));
        }
        let new = remote.opened..(id.index() + 1).max(remote.opened);
        remote.opened = new.end;
        Ok(new)
    }

    /// Handles a closed stream. Returns whether to advertise a new limit to the peer.
    pub(super) fn on_closed(&mut self, id: StreamId) -> bool {
        if self.is_local(id) {
            return false;
        }
        let remote = &mut self.remote[id.dir() as usize];
        remote.closed += 1;
        remote.limit() - remote.advertised >= (remote.concurrent / 8).max(1)
    }

    /// Whether any stream of the peer is open.
    pub(super) fn has_remote(&self, dir: Dir) -> bool {
        let remote = &self.remote[dir as usize];
        remote.opened > remote.closed
    }

    /// Raises the advertised limit as far as possible, and returns it.
    pub(super) fn advertise(&mut self, dir: Dir) -> u64 {
        let remote = &mut self.remote[dir as usize];
        remote.advertised = remote.advertised.max(remote.limit());
        remote.advertised
    }

    /// The limit that could be advertised now.
    pub(super) fn remote_limit(&self, dir: Dir) -> u64 {
        self.remote[dir as usize].limit()
    }

    /// The largest advertised limit.
    pub(super) fn advertised(&self, dir: Dir) -> u64 {
        self.remote[dir as usize].advertised
    }
}

#[cfg(test)]
mod tests;
