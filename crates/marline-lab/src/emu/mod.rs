//! The emulator: network namespaces joined by the link models, in real time.
//!
//! An [`Emulation`] takes a [`Fabric`](marline_sim::fabric::Fabric) and makes each of its hosts a network
//! namespace. Any program can run in it, on the kernel's TCP, UDP and MPTCP, and so can endpoints of this
//! process, through its [`Runtime`](marline::Runtime). Packets of the hosts pass a TUN device to one thread,
//! which moves the fabric in real time: a link model treats packets as it does in virtual time, and the
//! thread delivers each one at the time of the model, or slightly later. That delay is [measured](Lateness),
//! and a run with too much of it is invalid.
//!
//! Namespaces have no name and devices are not persistent, so nothing remains when this process ends for any
//! reason. Root is not needed where users may create user namespaces: see [`become_capable`].

mod backend;
mod clock;
mod diagnostics;
mod driver;
mod emulation;
mod error;
mod guard;
mod ip;
mod iperf;
mod kernel;
mod lateness;
mod line;
mod mahimahi;
mod namespace;
mod netlink;
mod program;
mod relay;
mod routing;
mod runtime;
mod segment;
mod spool;
mod stress;
mod tally;
mod tcp_tap;
mod tun;

pub use self::backend::Emulator;
pub use self::clock::in_virtual_time;
pub use self::emulation::Emulation;
pub use self::error::EmuError;
pub use self::ip::{IpPacket, MTU};
pub use self::lateness::Lateness;
pub use self::line::{Line, Recording};
pub use self::mahimahi::MahimahiLog;
pub use self::namespace::{Namespace, become_capable};
pub use self::program::Program;
pub use self::relay::Relay;
pub(crate) use self::routing::{LOOPBACK, Routing};
pub use self::spool::{Spool, Spooler};
pub use self::tally::{Report, Tally};
