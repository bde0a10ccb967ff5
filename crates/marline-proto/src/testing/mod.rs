//! What tests of this crate and of others share.

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
pub use network::{Conditions, Datagram, Direction, Filter, Network};
pub use pair::{ALPN, Node, Pair, PairConfig, SERVER_NAME};
pub use reassembly::check_reassembly;
