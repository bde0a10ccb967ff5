//! Which streams have something to send, and which changes of that the scheduler has yet to learn.

use super::Stream;
use super::control::{ControlFrame, ControlQueue};
use super::flow::SendCredit;
use marline_wire::StreamId;
use std::collections::VecDeque;

/// What the scheduler knows about one stream.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// Whether it was last reported as ready.
    reported: bool,
    queued: bool,
    /// The stream was finished when all of its data had been sent, which the scheduler has yet to learn.
    finished: bool,
    /// Whether it is among the streams whose ends are to be sent.
    end_queued: bool,
}

/// Streams whose readiness may differ from what the scheduler knows.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    changed: VecDeque<StreamId>,
    /// Streams that no longer exist and were last reported as ready.
    removed: Vec<StreamId>,
    /// Streams whose ends are to be sent without data; some may no longer be.
    ends: VecDeque<StreamId>,
    /// Whether the connection's credit ran out or became available: every stream may have changed.
    pub(super) all: bool,
}

impl ReadyQueue {
    /// Queues the stream if its readiness differs from what was reported; makes STREAM_DATA_BLOCKED or
    /// DATA_BLOCKED due if a limit blocks it.
    pub(super) fn check(
        &mut self,
        id: StreamId,
        stream: &mut Stream,
        permitted: bool,
        credit: &mut SendCredit,
        control: &mut ControlQueue,
    ) {
        if stream.is_ready(permitted, credit.left()) != stream.readiness.reported {
            self.queue(id, stream);
        }
        let Some(send) = &mut stream.send else {
            return;
        };
        if !permitted {
            return;
        }
        if send.is_end_due() && !stream.readiness.end_queued {
            stream.readiness.end_queued = true;
            self.ends.push_back(id);
        }
        if let Some(limit) = send.blocked() {
            if send.blocked_at != Some(limit) {
                send.blocked_at = Some(limit);
                control.make_due(id, stream, ControlFrame::StreamDataBlocked);
            }
        } else if send.has_unsent() && credit.left() == 0 {
            let limit = credit.max_data;
            control.data_blocked |= credit.blocked_at != Some(limit);
            credit.blocked_at = Some(limit);
        }
    }

    /// All data of the stream had been sent when it was finished: the scheduler is to learn of it.
    pub(super) fn on_finished(&mut self, id: StreamId, stream: &mut Stream) {
        stream.readiness.finished = true;
        self.queue(id, stream);
    }

    /// The first of the streams whose ends are to be sent; it may no longer exist.
    pub(super) fn first_end(&self) -> Option<StreamId> {
        self.ends.front().copied()
    }

    /// The end of the first is sent, or need not be; `stream` is that stream, if it still exists.
    pub(super) fn pop_end(&mut self, stream: Option<&mut Box<Stream>>) {
        self.ends.pop_front();
        if let Some(stream) = stream {
            stream.readiness.end_queued = false;
        }
    }

    fn queue(&mut self, id: StreamId, stream: &mut Stream) {
        if !stream.readiness.queued {
            stream.readiness.queued = true;
            self.changed.push_back(id);
        }
    }

    /// The stream is dropped: queued for the scheduler if it was last reported as ready.
    pub(super) fn forget(&mut self, id: StreamId, stream: &Stream) {
        if stream.readiness.reported {
            self.removed.push(id);
        }
    }

    /// A stream that no longer exists and was last reported as ready.
    pub(super) fn pop_removed(&mut self) -> Option<StreamId> {
        self.removed.pop()
    }

    /// A stream whose readiness may have changed, or that may no longer exist.
    pub(super) fn pop(&mut self) -> Option<StreamId> {
        self.changed.pop_front()
    }
}

impl Readiness {
    /// The readiness to report to the scheduler, given the present one; `None` if it has not changed. A stream that
    /// was finished and has no data left is reported once more as not ready.
    pub(super) fn report(&mut self, ready: bool) -> Option<bool> {
        self.queued = false;
        let changed = self.reported != ready;
        let finished = std::mem::take(&mut self.finished);
        self.reported = ready;
        (changed || finished && !ready).then_some(ready)
    }
}
