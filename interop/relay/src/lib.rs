//! A UDP relay between a QUIC client and server on loopback.
//!
//! It delays, drops, corrupts and rebinds as its [`Config`] says, keeps ECN code points, reads what QUIC shows in
//! clear, and reports what it saw ([`Report`]). Whatever is random comes from a seed, one generator a direction.

mod amplification;
mod config;
mod impair;
mod line;
mod packet;
mod relay;
mod report;
mod socket;

pub use config::{Blackhole, Config, Direction, Drops, Rebind};
pub use relay::Relay;
pub use report::{Flow, Report, Traffic};
