//! Simulated networks in virtual time, for unmodified endpoints.
//!
//! A [`Sim`] has hosts, routers and links, a clock, and the tasks that run on its hosts, all on one thread.
//! Each [`Host`] is a [`Runtime`](marline::Runtime): its sockets send into the simulated network, its timers
//! are exact to the nanosecond, and no time passes while a task computes. The clock advances when no task can
//! run. Equal seeds and equal settings give identical runs: there is no other source of randomness, and no
//! real clock is read.
//!
//! ```
//! use std::time::Duration;
//!
//! use marline::{Runtime, TransportConfig};
//! use marline_sim::SimBuilder;
//! use marline_sim::identity::{Identity, identity};
//!
//! let mut sim = SimBuilder::new(7)
//!     .link("wifi", ["client", "server"], "rate=10mbps,rtt=40ms,loss=1%")
//!     .build()?;
//! let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
//!
//! let transport = TransportConfig::default().into();
//! let config = identity().server_config(&[b"test"], &transport)?;
//! let accepting = server.endpoint(server.at(443), Some(config))?;
//! let config = identity().client_config(&[b"test"], &transport)?;
//! let connecting = client.endpoint(client.at(0), None)?;
//!
//! let limit = Duration::from_secs(10);
//! let rtt = sim.run(
//!     async {
//!         let there = connecting.connect_with(config, server.at(443), Identity::NAME).unwrap();
//!         let here = accepting.accept().await.unwrap();
//!         let ends = (there.await.unwrap(), here.await.unwrap());
//!         ends.0.rtt()
//!     },
//!     limit,
//! )?;
//! assert!(rtt >= Duration::from_millis(40));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Events at the same time have a fixed order: first packets arrive, in the order of the [`fabric`]; then timers
//! expire; then tasks run, in the order in which they were woken, until none can run.
//!
//! TLS keys differ from run to run, but all sizes and times are equal: the [`identity`] of the servers has
//! signatures of a constant length.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod builder;
mod capture;
mod config;
mod datagram;
mod executor;
pub mod fabric;
mod host;
mod host_info;
pub mod identity;
mod link;
mod sim;
mod socket;
mod sockets;
mod stall;
mod state;
mod statistics;
mod timer;
mod timers;

pub use crate::builder::{BuildError, SimBuilder};
pub use crate::capture::CaptureHandle;
pub use crate::config::SimConfig;
pub use crate::datagram::Datagram;
pub use crate::host::Host;
pub use crate::link::SimLink;
pub use crate::sim::Sim;
pub use crate::stall::{Stall, Stalled};
pub use crate::statistics::Statistics;
