//! MultiPipe: client-only pools of connections to one origin (Choudhary et al., "Novel MultiPipe QUIC Protocols to
//! Enhance the Wireless Network Performance", below "the paper").
//!
//! A *pipe* is a connection; every object is fetched whole on one. A [`PipePolicy`] decides which one, and how many
//! there are:
//!
//! | policy | pipes |
//! | --- | --- |
//! | [`rr`](RoundRobin) | a fixed number, each in turn (eq. 1) |
//! | [`cba`] | as many as radio, round-trip time and losses call for; each object goes to a pipe with capacity |
//!
//! The decisions are plain functions of numbers in [`cba`] and [`RoundRobin`]. The client of this crate applies them if
//! [`ClientConfig::pipes`](crate::client::ClientConfig::pipes) is set. The server needs to know nothing of them.

pub mod cba;
mod kinds;
mod policy;
mod report;
mod rr;
mod signal;

pub use self::kinds::{ObjectKind, ObjectKinds};
pub use self::policy::{POLICIES, PipePolicy, PipesConfig};
pub use self::report::{PipeReport, PipeState};
pub use self::rr::{RoundRobin, RrAssignment, RrConfig};
#[cfg(all(target_os = "linux", feature = "radio"))]
pub use self::signal::{ASSUMED_NOISE_DBM, ModemSource, RadioError, WifiSource};
#[cfg(target_os = "linux")]
pub use self::signal::{LineSource, LiveSignal, SignalHost, SignalNotice};
pub use self::signal::{NoSignal, RadioSample, RadioSignal, SignalError, SignalTrace};
