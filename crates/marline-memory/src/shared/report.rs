//! Reports of whether the server can be used.

use redis::RedisError;

/// Whether the server of a [`SharedStore`](super::SharedStore) can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It answers again.
    Available,
    /// It cannot be reached, refuses the user or a command, or is too slow. The reason, without the URL, which may
    /// contain a password.
    Unavailable(String),
}

/// Reports changes only: an unreachable server is tried again and again.
pub(super) struct Reporter {
    report: Box<dyn Fn(ServerState) + Send>,
    /// Why the server could not be used, if so.
    reported: Option<String>,
}

impl Reporter {
    pub(super) fn new(report: Box<dyn Fn(ServerState) + Send>) -> Self {
        Self {
            report,
            reported: None,
        }
    }

    /// Reports the result of a request unless it is as the one before.
    pub(super) fn on_result(&mut self, result: Result<(), &RedisError>) {
        let reason = result.err().map(ToString::to_string);
        if reason == self.reported {
            return;
        }
        (self.report)(match &reason {
            Some(reason) => ServerState::Unavailable(reason.clone()),
            None => ServerState::Available,
        });
        self.reported = reason;
    }
}
