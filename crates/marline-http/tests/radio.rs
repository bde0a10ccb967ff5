//! Radios of this machine as sources of the signal, with what answers for them.

#![cfg(all(target_os = "linux", feature = "radio"))]

#[path = "radio/bus.rs"]
mod bus;
#[path = "radio/modem.rs"]
mod modem;
