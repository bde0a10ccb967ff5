//! A UDP relay between a QUIC client and server on loopback.
//!
//! It delays, drops, corrupts and rebinds according to its [`Config`], keeps ECN code points, parses the unprotected
//! fields of QUIC packets, and reports statistics ([`Report`]). Randomness is seeded, with a generator per direction.

mod amplification;
mod config;
mod impair;
mod link;
mod packet;
mod relay;
mod report;
mod socket;

pub use config::{Blackhole, Config, Direction, Drops, Rebind};
pub use relay::Relay;
pub use report::{Flow, Report, Traffic};
