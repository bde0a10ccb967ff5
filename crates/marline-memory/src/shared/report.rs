//! Reports of whether the server can be used.

use redis::RedisError;

/// Whether the server of a [`SharedStore`](super::SharedStore) can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// The server answers again.
    Available,
    /// The server cannot be reached, refuses the user or a command, or is too slow. The reason excludes the URL,
    /// which may contain a password.
    Unavailable(String),
}

/// Reports changes of state only: an unreachable server is retried repeatedly.
pub(super) struct Reporter {
    report: Box<dyn Fn(ServerState) + Send>,
    /// The reported reason of unavailability; `None` while the server is available.
    reported: Option<String>,
}

impl Reporter {
    pub(super) fn new(report: Box<dyn Fn(ServerState) + Send>) -> Self {
        Self {
            report,
            reported: None,
        }
    }

    /// Reports the result of a request if it differs from the previous one.
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
