//! Models of network links, which determine the departure time or the loss of each packet.
//!
//! No sockets, no clock, no global randomness: the caller passes the current time with each packet,
//! and each departing packet carries its departure time. The simulator drives a model with virtual
//! time, the emulator with real time; equal seeds and equal arrivals give equal results in both.
//!
//! - A [`Link`] carries packets in one direction; a [`Chain`] connects several in series.
//! - A [`Medium`] carries packets among stations: a [`Duplex`] of two links, or a radio channel
//!   that all stations and both directions share.

pub mod ack_thinning;
pub mod blockage;
mod bucket;
mod chain;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod correlated;
mod corrupt;
mod delay;
mod delay_line;
pub mod delay_trace;
mod duplicate;
pub mod ecmp;
mod exit_queue;
mod filter;
pub mod handover;
pub mod jitter;
mod link;
pub mod loss;
pub mod lte;
mod medium;
mod model;
mod mtu;
mod outage;
mod overtaking;
mod packet;
mod policer;
pub mod preset;
pub mod process;
pub mod queue;
mod random;
mod rate;
mod seed;
mod shaper;
pub mod spec;
mod station_pair;
#[cfg(test)]
mod testing;
mod time;
pub mod trace;
pub mod wifi;

pub use chain::Chain;
pub use corrupt::Corrupt;
pub use delay::Delay;
pub use duplicate::Duplicate;
pub use ecmp::EcmpHash;
pub use filter::{Filter, FilterLink};
pub use jitter::{Jitter, JitterConfig};
pub use link::{DropReason, Exit, Link};
pub use loss::{Loss, LossModel};
pub use medium::{Carried, Duplex, Medium, Station};
pub use model::{Fate, MODELS, MakeModel, ModelLink, PacketModel};
pub use mtu::Mtu;
pub use outage::{Outages, Period, Schedule, Suspensions};
pub use overtaking::Overtaking;
pub use packet::{Ecn, Packet};
pub use policer::Policer;
pub use rate::{Framing, Rate, UNLIMITED};
pub use seed::Seed;
pub use shaper::{Peak, Shaper, ShaperConfig};
pub use spec::LinkSpec;
pub use station_pair::StationPair;
pub use time::Time;
