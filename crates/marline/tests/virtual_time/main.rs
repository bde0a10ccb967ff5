//! Endpoints in virtual time, on networks of `marline-sim`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acknowledgments;
mod close;
mod follow;
mod manager;
mod mtu;
mod paths;
mod rebinding;
mod repeat;
mod resumed;
mod setup;
#[cfg(feature = "tracing")]
mod trace;
