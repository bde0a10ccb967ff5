//! Endpoints over loopback, with one file per subject.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bulk;
mod cancel;
mod close;
mod datagrams;
mod early_data;
mod echo;
mod events;
mod faults;
mod manager;
mod migration;
#[cfg(target_os = "linux")]
mod paths;
mod setup;
mod streams;
#[cfg(target_os = "linux")]
mod unreachable;
#[cfg(target_os = "linux")]
mod workers;
