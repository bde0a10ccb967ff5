//! Which streams have something to send.

use super::Stream;
use super::control::{ControlQueue, Owed};
use super::flow::SendCredit;
use marline_wire::StreamId;
use std::collections::VecDeque;

/// What the scheduler knows of one stream.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// What it was told last.
    said: bool,
    queued: bool,
}

/// Streams whose readiness may differ from what the scheduler knows.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    changed: VecDeque<StreamId>,
    /// Streams that the scheduler counts on and that are gone.
    gone: Vec<StreamId>,
    /// The connection's credit ran out or came back: every stream may be concerned.
    pub(super) all: bool,
}

impl ReadyQueue {
    /// Compares what the scheduler knows with the truth; makes due what a blocked stream must say.
    pub(super) fn check(
        &mut self,
        id: StreamId,
        stream: &mut Stream,
        permitted: bool,
        credit: &mut SendCredit,
        control: &mut ControlQueue,
    ) {
        if stream.is_ready(permitted, credit.left()) != stream.readiness.said {
            self.note(id, stream);
        }
        let Some(send) = &mut stream.send else {
            return;
        };
        if !permitted {
            return;
        }
        if let Some(limit) = send.blocked() {
            if send.blocked_at != Some(limit) {
                send.blocked_at = Some(limit);
                control.owe(id, stream, Owed::StreamDataBlocked);
            }
        } else if send.has_unsent() && credit.left() == 0 {
            let limit = credit.max_data;
            control.data_blocked |= credit.blocked_at != Some(limit);
            credit.blocked_at = Some(limit);
        }
    }

    fn note(&mut self, id: StreamId, stream: &mut Stream) {
        if !stream.readiness.queued {
            stream.readiness.queued = true;
            self.changed.push_back(id);
        }
    }

    /// The stream is dropped: the scheduler must hear of it if it counts on it.
    pub(super) fn forget(&mut self, id: StreamId, stream: &Stream) {
        if stream.readiness.said {
            self.gone.push(id);
        }
    }

    /// A stream that is gone while the scheduler counts on it.
    pub(super) fn pop_gone(&mut self) -> Option<StreamId> {
        self.gone.pop()
    }

    /// A stream that may have changed, or be gone.
    pub(super) fn pop(&mut self) -> Option<StreamId> {
        self.changed.pop_front()
    }
}

impl Readiness {
    /// What to tell the scheduler, given the truth.
    pub(super) fn tell(&mut self, ready: bool) -> Option<bool> {
        self.queued = false;
        let news = self.said != ready;
        self.said = ready;
        news.then_some(ready)
    }
}
