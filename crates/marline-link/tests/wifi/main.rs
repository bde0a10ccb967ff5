//! Compares the shared medium with other simulators of 802.11 and published measurements.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod delay;
mod goodput;
mod impairments;
mod invariants;
mod source;
