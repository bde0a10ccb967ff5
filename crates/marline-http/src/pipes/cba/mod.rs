//! CBA-MP-QUIC: cross-layer burst aware pipes (the paper's sections IV and V).
//!
//! | question | answer | from |
//! | --- | --- | --- |
//! | how good is the radio? | [`NetworkAwareness`] | eq. 2 |
//! | how good is the connection? | [`Srtt`], and the share of lost packets | eq. 3 |
//! | how many pipes may there be? | [`maximum`] | table I, section V-A |
//! | how much may a pipe take now? | [`available_burst`], less a [`margin()`] for its queue | eqs. 4 to 8 |
//! | which pipe gets an object? | [`pick()`] | algorithm 1 |
//! | when are pipes opened? | [`creation()`] | section IV-C, fig. 4 |
//!
//! Where the paper contradicts itself, a switch of [`CbaConfig`] has the literal reading and the one that works; the
//! default is the latter.

mod burst;
mod config;
mod connection;
mod creation;
mod margin;
mod network;
mod pick;
mod scores;

pub use self::burst::{BurstMode, ObjectProgress, available_burst};
pub use self::config::CbaConfig;
pub(super) use self::config::ENTRY;
pub use self::connection::Srtt;
pub use self::creation::{Creation, CreationDecision, PipeCounts, creation, history_allows_spare};
pub use self::margin::{Margin, MarginUnit, PipeLoad, margin};
pub use self::network::{Mean, NetworkAwareness};
pub use self::pick::{HighRule, Pick, Request, pick};
pub use self::scores::{
    Combine, Conditions, Mapping, Maximum, MaximumRule, maximum, score_loss, score_sinr, score_srtt,
};
