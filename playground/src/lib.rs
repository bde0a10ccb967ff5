//! The simulator for a page without a server: one link, one page or file, one system, loaded in virtual time.
//!
//! [`run`] is the same code natively and as WebAssembly, and so are its results: their [digests](Outcome::digest) agree.

mod error;
mod http3;
mod load;
mod outcome;
mod page;
mod record;
mod scenario;
#[cfg(target_family = "wasm")]
mod wasm;

pub use crate::error::Error;
pub use crate::load::run;
pub use crate::outcome::{LinkRecord, LostPacket, ObjectTimes, Outcome, Packets};
pub use crate::scenario::{Content, Scenario, System};
