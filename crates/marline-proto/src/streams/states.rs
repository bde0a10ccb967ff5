//! States of streams for observers (RFC 9000, sections 3.1 and 3.2). Nothing is stored without an observer.

use marline_wire::StreamId;
use rustc_hash::FxHashMap;

use super::recv::{RecvPart, RecvState};
use super::send::{SendPart, SendState};
use super::{Stream, Streams};
use crate::observe::events::{Initiator, StreamHalf, StreamState, StreamStateUpdated};

/// The last reported states of each stream, and the changes not yet reported.
#[derive(Debug, Default)]
pub(super) struct StateLog {
    known: FxHashMap<StreamId, KnownStates>,
    changes: Vec<StreamStateUpdated>,
}

/// The last reported states of a stream's parts.
#[derive(Clone, Copy, Debug, Default)]
struct KnownStates {
    sending: Option<StreamState>,
    receiving: Option<StreamState>,
}

impl StateLog {
    /// Compares a stream with its last reported states. A part that no longer exists was in a terminal state before.
    fn note(&mut self, id: StreamId, stream: &Stream, opened_by: Initiator) {
        let known = self.known.entry(id).or_default();
        if let Some(send) = &stream.send {
            let new = send_state(send.state());
            let old = known.sending.replace(new);
            if old != Some(new) {
                self.changes.push(StreamStateUpdated {
                    id,
                    half: StreamHalf::Sending,
                    old,
                    new,
                    trigger: Some(send_trigger(new, send, opened_by)),
                });
            }
        }
        if let Some(recv) = &stream.recv {
            let new = recv_state(recv);
            let old = known.receiving.replace(new);
            if old != Some(new) {
                self.changes.push(StreamStateUpdated {
                    id,
                    half: StreamHalf::Receiving,
                    old,
                    new,
                    trigger: Some(recv_trigger(new, opened_by)),
                });
            }
        }
    }

    pub(super) fn forget(&mut self, id: StreamId) {
        self.known.remove(&id);
    }
}

impl Streams {
    /// Starts to record changes of state for [`Self::take_state_changes`].
    pub(crate) fn log_states(&mut self) {
        self.states = Some(Box::default());
    }

    /// The changes of state since the last call, in order.
    pub(crate) fn take_state_changes(&mut self) -> Vec<StreamStateUpdated> {
        let states = self.states.as_mut();
        states.map_or_else(Vec::new, |log| std::mem::take(&mut log.changes))
    }

    /// Checks whether a stream has entered another state.
    pub(super) fn note_states(&mut self, id: StreamId) {
        let Some(states) = &mut self.states else {
            return;
        };
        if let Some(stream) = self.table.get(&id) {
            let opened_by = match self.ids.is_local(id) {
                true => Initiator::Local,
                false => Initiator::Remote,
            };
            states.note(id, stream, opened_by);
        }
    }
}

const fn send_state(state: SendState) -> StreamState {
    match state {
        SendState::Ready => StreamState::Ready,
        SendState::Send => StreamState::Send,
        SendState::DataSent => StreamState::DataSent,
        SendState::ResetSent { .. } => StreamState::ResetSent,
        SendState::DataRecvd => StreamState::DataReceived,
        SendState::ResetRecvd => StreamState::ResetReceived,
    }
}

fn recv_state(recv: &RecvPart) -> StreamState {
    match recv.state() {
        RecvState::Recv => StreamState::Receive,
        RecvState::SizeKnown => StreamState::SizeKnown,
        RecvState::DataRecvd => StreamState::DataReceived,
        RecvState::ResetRecvd { .. } => StreamState::ResetReceived,
        RecvState::DataRead => StreamState::DataRead,
        RecvState::ResetRead => StreamState::ResetRead,
    }
}

/// The end that moved a sending part to `state`: the peer by acknowledging everything, or with STOP_SENDING.
fn send_trigger(state: StreamState, send: &SendPart, opened_by: Initiator) -> Initiator {
    match state {
        StreamState::Ready => opened_by,
        StreamState::DataReceived | StreamState::ResetReceived => Initiator::Remote,
        StreamState::ResetSent if send.is_stopped() => Initiator::Remote,
        _ => Initiator::Local,
    }
}

/// The end that moved a receiving part to `state`: the application by reading to the end.
const fn recv_trigger(state: StreamState, opened_by: Initiator) -> Initiator {
    match state {
        StreamState::Receive => opened_by,
        StreamState::DataRead | StreamState::ResetRead => Initiator::Local,
        _ => Initiator::Remote,
    }
}

#[cfg(test)]
mod tests;
