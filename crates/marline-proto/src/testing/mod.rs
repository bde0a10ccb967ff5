//! What tests of this crate and of others share.

mod certs;
#[cfg(test)]
mod hex;

pub use certs::TestIdentity;
#[cfg(test)]
pub(crate) use hex::hex;
