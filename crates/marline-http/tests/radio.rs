//! Radios of this machine as sources of the signal, with mock services.

#![cfg(all(target_os = "linux", feature = "radio"))]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

#[path = "radio/bus.rs"]
mod bus;
#[path = "radio/modem.rs"]
mod modem;
#[path = "radio/wifi.rs"]
mod wifi;
