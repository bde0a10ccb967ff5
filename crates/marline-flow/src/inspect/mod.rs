//! Names and versions found at the beginning of a connection.

mod alpn;
mod assembly;
mod cleartext;
mod messages;
mod quic;
mod records;
mod tcp;
mod version;

pub(crate) use alpn::{HttpVersion, Label, LabelSource, Labels};
pub(crate) use quic::{Context as QuicContext, Quic, QuicIds};
pub(crate) use tcp::{Content, Tcp};
pub(crate) use version::QuicVersion;

/// The progress of the inspection of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More packets may show more.
    Continues,
    /// Nothing more can be found.
    Done,
}

impl Progress {
    /// Continues while there may be more.
    const fn while_any(more: bool) -> Self {
        match more {
            true => Self::Continues,
            false => Self::Done,
        }
    }
}

/// One of the two ends of a flow, in the order of its key.
pub(crate) type End = usize;

/// The other end.
pub(crate) const fn other(end: End) -> End {
    1 - end
}
