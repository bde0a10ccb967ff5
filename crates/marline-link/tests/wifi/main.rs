//! The shared medium against what other simulators of 802.11 and published measurements found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod delay;
mod goodput;
mod impairments;
mod invariants;
mod source;
