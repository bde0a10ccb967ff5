//! Servers and clients of each version of HTTP in one process.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod attack;
mod budgets;
mod certificates;
mod closing;
mod common;
mod compression;
mod datagrams;
mod fallback;
mod files;
mod floods;
mod host;
mod http1;
#[cfg(feature = "testing")]
mod http2;
mod layers;
mod lifecycle;
mod log;
mod metrics;
mod multipath_tcp;
mod pages;
mod panics;
mod paths;
mod pem;
mod pipes;
mod priorities;
mod proxy;
mod quic;
mod resuming;
#[cfg(feature = "testing")]
mod stalls;
mod tls;
mod transfers;
mod trusted;
mod uploads;
#[cfg(target_os = "linux")]
mod workers;
