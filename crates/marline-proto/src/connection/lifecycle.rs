//! From the first packet to the last: open, closing, draining, drained (RFC 9000, section 10).

use bytes::Bytes;
use marline_wire::{PathId, TransportError};

use super::events::ConnectionError;
use crate::time::Instant;

/// What CONNECTION_CLOSE says.
#[derive(Clone, Debug)]
pub(super) enum Close {
    Transport(TransportError),
    Application { code: u64, reason: Bytes },
}

#[derive(Debug)]
enum State {
    Open,
    /// CONNECTION_CLOSE is sent, and again when packets come, ever more rarely.
    Closing {
        close: Close,
        until: Instant,
        /// On these paths.
        due: Vec<PathId>,
        received: u64,
    },
    /// The peer closed: nothing is sent.
    Draining {
        until: Instant,
    },
    Drained,
}

/// The life of a connection; all transitions are here.
#[derive(Debug)]
pub(super) struct Lifecycle {
    state: State,
    error: Option<ConnectionError>,
}

impl Lifecycle {
    pub(super) fn new() -> Self {
        Self {
            state: State::Open,
            error: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub(super) fn is_drained(&self) -> bool {
        matches!(self.state, State::Drained)
    }

    /// Why the connection ended, once it has.
    pub(super) fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    /// We close: `close` goes to the peer on each of `paths`, and to latecomers until `until`.
    pub(super) fn move_to_closing(
        &mut self,
        close: Close,
        error: ConnectionError,
        (paths, until): (Vec<PathId>, Instant),
    ) {
        if self.is_open() {
            self.state = State::Closing {
                close,
                until,
                due: paths,
                received: 0,
            };
            self.error = Some(error);
        }
    }

    /// The peer closed; we answer nothing until `until`.
    pub(super) fn move_to_draining(&mut self, error: ConnectionError, until: Instant) {
        match self.state {
            State::Open => self.error = Some(error),
            State::Closing { .. } => {}
            State::Draining { .. } | State::Drained => return,
        }
        self.state = State::Draining { until };
    }

    /// It is over, without a word.
    pub(super) fn move_to_drained(&mut self, error: ConnectionError) {
        self.state = State::Drained;
        self.error.get_or_insert(error);
    }

    /// A datagram came on `path` while closing: the answer is repeated for the 1st, 2nd, 4th, 8th ...
    pub(super) fn on_datagram(&mut self, path: PathId) {
        if let State::Closing { due, received, .. } = &mut self.state {
            *received += 1;
            if received.is_power_of_two() && !due.contains(&path) {
                due.push(path);
            }
        }
    }

    /// What to send now, and on which path, once.
    pub(super) fn take_due_close(&mut self) -> Option<(Close, PathId)> {
        match &mut self.state {
            State::Closing { close, due, .. } => Some((close.clone(), due.pop()?)),
            _ => None,
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closing { until, .. } | State::Draining { until } => Some(until),
            State::Open | State::Drained => None,
        }
    }

    /// Returns whether the connection is drained now and was not before.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        let over = self.next_timeout().is_some_and(|until| until <= now);
        if over {
            self.state = State::Drained;
        }
        over
    }
}
