//! Helpers that tests of this crate and of others share.
//!
//! [`Pair`] is the core's harness: a client's and a server's [`Endpoint`](crate::Endpoint) with their
//! connections, driven by hand, datagram by datagram, over a [`Network`]. A test steps to the next event,
//! looks at the state of a connection, hands it a crafted datagram, or changes the [`Conditions`] of the
//! network and goes on.
//!
//! It is not the simulator of `marline-sim`, which runs whole endpoints of `marline` with tasks, timers and
//! sockets over the links of `marline-link`. The core lies below both, and its tests need what the
//! simulator's hosts hide: connections without a runtime in between, and datagrams that no link would make
//! (bytes altered at random, erased and forged ECN marks, rebound NATs), under conditions that change while
//! datagrams are in flight. Tests of endpoints, runtimes and paths over several links belong on the
//! simulator, tests of the protocol's rules here.

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
