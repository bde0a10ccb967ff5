//! Tests of the emulator. Without the privilege to make network namespaces, they print `skipped: reason`.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

#[path = "../job/mod.rs"]
mod job;
mod link;
mod setup;

mod backend;
mod browser;
mod iperf;
mod lifetime;
mod other_server;
mod paths;
mod ping;
mod quic;
mod relay;
mod same_decisions;
mod stress;
mod tcp;
mod web;
