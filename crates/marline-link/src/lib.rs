//! Models of links: when, if ever, a packet leaves.
//!
//! No sockets, no clock, no global randomness: packets go in with the present moment, and come out
//! with the moment at which they left. The simulator moves a model with virtual time, the emulator
//! with real time; for equal seeds and equal arrivals both get the same decisions.
//!
//! - A [`Link`] carries packets one way; [`chain`](crate::chain) puts several behind each other.
//! - A [`Medium`] carries packets among stations: a [`Duplex`] of two links, or a radio channel
//!   that all stations and both directions share.

mod link;
mod medium;
mod packet;
mod seed;
mod time;

pub use link::{DropReason, Exit, Link};
pub use medium::{Carried, Duplex, Medium, Station};
pub use packet::{Ecn, Packet};
pub use seed::Seed;
pub use time::Time;
