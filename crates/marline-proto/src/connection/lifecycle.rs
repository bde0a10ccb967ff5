//! The states of a connection: open, closing, draining, drained (RFC 9000, section 10).

use bytes::Bytes;
use marline_wire::{PathId, TransportError};

use super::events::ConnectionError;
use crate::time::Instant;

/// The content of CONNECTION_CLOSE.
#[derive(Clone, Debug)]
pub(super) enum Close {
    Transport(TransportError),
    Application { code: u64, reason: Bytes },
}

#[derive(Debug)]
enum State {
    Open,
    /// CONNECTION_CLOSE was sent, and is repeated in answer to ever fewer of the received datagrams.
    Closing {
        close: Close,
        until: Instant,
        /// Paths on which it is due.
        due: Vec<PathId>,
        /// Datagrams received since.
        received: u64,
    },
    /// The peer closed: no packets are sent.
    Draining {
        until: Instant,
    },
    Drained,
}

/// The parameters with which this end closes the connection.
#[derive(Debug)]
pub(super) struct Closing {
    /// Content of CONNECTION_CLOSE.
    pub(super) close: Close,
    /// Error reported to the application.
    pub(super) error: ConnectionError,
    /// Paths on which it is sent, the last one first.
    pub(super) paths: Vec<PathId>,
    /// The end of the closing state.
    pub(super) until: Instant,
}

/// The state of a connection and all its transitions.
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

    /// The reason why the connection ended, once it has.
    pub(super) fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    /// Enters the closing state.
    pub(super) fn move_to_closing(&mut self, closing: Closing) {
        if self.is_open() {
            self.state = State::Closing {
                close: closing.close,
                until: closing.until,
                due: closing.paths,
                received: 0,
            };
            self.error = Some(closing.error);
        }
    }

    /// Enters the draining state, which ends at `until`.
    pub(super) fn move_to_draining(&mut self, error: ConnectionError, until: Instant) {
        match self.state {
            State::Open => self.error = Some(error),
            State::Closing { .. } => {}
            State::Draining { .. } | State::Drained => return,
        }
        self.state = State::Draining { until };
    }

    /// Ends the connection without a closing or draining state.
    pub(super) fn move_to_drained(&mut self, error: ConnectionError) {
        self.state = State::Drained;
        self.error.get_or_insert(error);
    }

    /// Handles a datagram received on `path` while closing: CONNECTION_CLOSE is repeated for the 1st, 2nd, 4th, 8th ...
    pub(super) fn on_datagram(&mut self, path: PathId) {
        if let State::Closing { due, received, .. } = &mut self.state {
            *received += 1;
            if received.is_power_of_two() && !due.contains(&path) {
                due.push(path);
            }
        }
    }

    /// The next path on which CONNECTION_CLOSE is due, once.
    pub(super) fn take_due_path(&mut self) -> Option<PathId> {
        match &mut self.state {
            State::Closing { due, .. } => due.pop(),
            _ => None,
        }
    }

    /// The content of CONNECTION_CLOSE while closing.
    pub(super) fn close(&self) -> Option<&Close> {
        match &self.state {
            State::Closing { close, .. } => Some(close),
            _ => None,
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closing { until, .. } | State::Draining { until } => Some(until),
            State::Open | State::Drained => None,
        }
    }

    /// Returns whether the connection has just become drained.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        let over = self.next_timeout().is_some_and(|until| until <= now);
        if over {
            self.state = State::Drained;
        }
        over
    }
}
