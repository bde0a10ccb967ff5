//! Worlds in virtual time, with real endpoints in them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod background;
mod link;
mod memory;
mod networks;
mod repeat;
mod sockets;
mod stalls;
mod transfer;
