//! Streams with data to send, and changes not yet reported to the scheduler.

use super::Stream;
use super::control::{ControlFrame, ControlQueue};
use super::flow::SendCredit;
use marline_wire::StreamId;
use std::collections::VecDeque;

/// The state of one stream last reported to the scheduler.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// Whether it was last reported as ready.
    reported: bool,
    queued: bool,
    /// Whether the stream was finished when all of its data had been sent, which is not reported yet.
    finished: bool,
    /// Whether it is queued for a FIN without data.
    end_queued: bool,
}

/// Streams whose readiness may differ from that last reported.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    changed: VecDeque<StreamId>,
    /// Streams that no longer exist and were last reported as ready.
    removed: Vec<StreamId>,
    /// Streams that have to send a FIN without data; some may no longer need it.
    ends: VecDeque<StreamId>,
    /// Whether the connection's credit was exhausted or raised: every stream may have changed.
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

    /// Called when a stream is finished after all of its data had been sent, which must be reported
    /// to the scheduler.
    pub(super) fn on_finished(&mut self, id: StreamId, stream: &mut Stream) {
        stream.readiness.finished = true;
        self.queue(id, stream);
    }

    /// The first stream with a FIN to send; it may no longer exist.
    pub(super) fn first_end(&self) -> Option<StreamId> {
        self.ends.front().copied()
    }

    /// Removes the first stream, whose FIN is sent or not needed; `stream` is that stream, if it still exists.
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

    /// Handles a dropped stream: queued for the scheduler if it was last reported as ready.
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
