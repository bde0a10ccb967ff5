//! States of streams, and bytes that wait for reassembly.

use marline_wire::StreamId;

use super::Initiator;

/// Half of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamHalf {
    /// What this end sends.
    Sending,
    /// What this end receives.
    Receiving,
}

/// States of either half (RFC 9000, sections 3.1 and 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamState {
    /// Sending: created, nothing sent.
    Ready,
    /// Sending: data flows.
    Send,
    /// Sending: everything was sent once.
    DataSent,
    /// Sending: RESET_STREAM was sent.
    ResetSent,
    /// Sending: RESET_STREAM was acknowledged. Receiving: it arrived.
    ResetReceived,
    /// Receiving: data flows.
    Receive,
    /// Receiving: the final size is known.
    SizeKnown,
    /// Sending: everything was acknowledged. Receiving: everything arrived.
    DataReceived,
    /// Receiving: the application has everything.
    DataRead,
    /// Receiving: the application was notified of the reset.
    ResetRead,
}

/// One half of a stream entered another state.
#[derive(Clone, Copy, Debug)]
pub struct StreamStateUpdated {
    /// The stream.
    pub id: StreamId,
    /// Which half.
    pub half: StreamHalf,
    /// The state before, if there was one.
    pub old: Option<StreamState>,
    /// The state now.
    pub new: StreamState,
    /// Which end caused it, if known.
    pub trigger: Option<Initiator>,
}

/// The number of received bytes that cannot be read yet has changed, on all streams together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyUpdated {
    /// Bytes received and held because earlier ones of their stream are missing.
    pub out_of_order_bytes: u64,
}
