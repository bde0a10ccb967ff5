//! Real time: network namespaces joined by the same links.
//!
//! An [`Emulation`] takes a [`Fabric`](marline_sim::fabric::Fabric) and makes each of its hosts a network
//! namespace: anybody's programs run in it on the kernel's own TCP, UDP and MPTCP, and endpoints of
//! this process through its [`Runtime`](marline::Runtime). What hosts send passes a TUN device and comes
//! to one thread, which moves the fabric with real time: a model decides on packets as it does in
//! virtual time, and the thread hands each one over at the moment the model says, or a little later.
//! How much later is [measured](Lateness): a run that was too late is not valid.
//!
//! Namespaces have no name and devices do not persist, so nothing is left over when this process ends,
//! however it ends. Root is not needed where users may have user namespaces: see [`become_capable`].

mod backend;
mod clock;
mod driver;
mod emulation;
mod error;
mod guard;
mod ip;
mod iperf;
mod lateness;
mod line;
mod mahimahi;
mod namespace;
mod program;
mod relay;
mod runtime;
mod segment;
mod spool;
mod tally;
mod tcp_tap;
mod tun;

pub use self::backend::Emulator;
pub use self::emulation::Emulation;
pub use self::error::EmuError;
pub use self::ip::{IpPacket, MTU};
pub use self::lateness::Lateness;
pub use self::line::{Line, Recording};
pub use self::mahimahi::MahimahiLog;
pub use self::namespace::{Namespace, become_capable};
pub use self::program::Program;
pub use self::relay::Relay;
pub use self::spool::{Spool, Spooler};
pub use self::tally::{Report, Tally};
