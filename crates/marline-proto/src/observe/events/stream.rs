//! States of streams, and bytes buffered out of order.

use marline_wire::StreamId;

use super::Initiator;

/// Half of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamHalf {
    /// Sending part of this end.
    Sending,
    /// Receiving part of this end.
    Receiving,
}

/// States of either half (RFC 9000, sections 3.1 and 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamState {
    /// Sending: created, nothing sent.
    Ready,
    /// Sending: data is sent.
    Send,
    /// Sending: all data was sent once.
    DataSent,
    /// Sending: RESET_STREAM was sent.
    ResetSent,
    /// Sending: RESET_STREAM was acknowledged. Receiving: RESET_STREAM arrived.
    ResetReceived,
    /// Receiving: data arrives.
    Receive,
    /// Receiving: the final size is known.
    SizeKnown,
    /// Sending: all data was acknowledged. Receiving: all data arrived.
    DataReceived,
    /// Receiving: the application has read all data.
    DataRead,
    /// Receiving: the application was notified of the reset.
    ResetRead,
}

/// One half of a stream entered another state.
#[derive(Clone, Copy, Debug)]
pub struct StreamStateUpdated {
    /// The stream.
    pub id: StreamId,
    /// Half of the stream.
    pub half: StreamHalf,
    /// Previous state, if there was one.
    pub old: Option<StreamState>,
    /// New state.
    pub new: StreamState,
    /// End that caused it, if known.
    pub trigger: Option<Initiator>,
}

/// The number of received bytes that cannot be read yet has changed, over all streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyUpdated {
    /// Bytes buffered because earlier ones of their stream are missing.
    pub out_of_order_bytes: u64,
}
