//! HTTP/3 in virtual time, without a tokio runtime. All runs are deterministic.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fetch;
mod http3;
mod page;
mod pipes;
mod ranges;
mod setup;
mod stop;
