//! HTTP/3 in virtual time: no tokio runtime, no clock, no socket of the system's, and every run the same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fetch;
mod page;
mod ranges;
mod setup;
mod stop;
mod world;
