//! Test helpers shared by this crate and others.
//!
//! [`Pair`] is the core's harness: a client's and a server's [`Endpoint`](crate::Endpoint) with their connections,
//! driven explicitly, datagram by datagram, over a [`Network`]. A test steps to the next event, inspects the state
//! of a connection, delivers a crafted datagram, or changes the [`Conditions`] of the network.
//!
//! It is not the simulator of `marline-sim`, which runs whole endpoints of `marline` with tasks, timers and
//! sockets over the links of `marline-link`. The core depends on neither, and its tests need access that
//! the simulator's hosts do not give: connections without a runtime, and datagrams that no link would
//! produce (bytes altered at random, erased and forged ECN marks, rebound NATs), under conditions that
//! change while datagrams are in flight. Tests of endpoints, runtimes and paths over several links belong
//! on the simulator, tests of the protocol's rules here.

mod certs;
pub mod fuzz;
#[cfg(test)]
mod hex;
mod network;
#[cfg(test)]
pub(crate) mod ops;
mod pair;
mod reassembly;

pub use certs::TestIdentity;
#[cfg(test)]
pub(crate) use hex::hex;
pub use network::{Conditions, Counts, Datagram, Direction, Filter, Network};
pub use pair::{ALPN, Ends, Node, Pair, PairConfig, SERVER_NAME};
pub use reassembly::check_reassembly;
