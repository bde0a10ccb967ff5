//! Virtual time: a runtime whose clock moves when nothing else can happen.
//!
//! A [`World`] is a [`Fabric`](crate::fabric::Fabric), a clock and the tasks that run in it, on one
//! thread. Its [`Host`]s are runtimes for real endpoints: their sockets send into the fabric, their
//! timers ring to the nanosecond, and no time passes while a task computes. Equal seeds and equal
//! settings give equal runs, to the last packet: nothing else is random, and nothing reads a clock.
//!
//! What happens at one moment happens in a fixed order: first packets arrive, in the order of the
//! fabric; then timers ring; then tasks run, in the order in which they were woken, until none is
//! left that can.
//!
//! Keys of TLS differ from run to run, but the [`identity`](crate::identity) of the servers has signatures of one
//! length, so that no size and no time does.

mod backend;
mod capture;
mod config;
mod datagram;
mod executor;
mod host;
mod runtime;
mod socket;
mod sockets;
mod stall;
mod state;
mod statistics;
mod timers;
mod world;

pub use self::backend::Simulator;
pub use self::capture::CaptureHandle;
pub use self::config::WorldConfig;
pub use self::datagram::Datagram;
pub use self::host::Host;
pub use self::stall::{Stall, Stalled};
pub use self::statistics::Statistics;
pub use self::world::World;
