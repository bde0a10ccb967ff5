//! Simulations with real endpoints.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod builder;
mod faults;
mod link;
mod memory;
mod networks;
mod repeat;
mod sockets;
mod stalls;
mod support;
mod transfer;
