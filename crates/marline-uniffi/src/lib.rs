//! The client of marline as classes of Kotlin, Swift and Python, which UniFFI generates.
//!
//! Each is one of `marline-ffi` behind a lock, so that any thread may call it. Calls block.

mod buffer;
mod client;
mod connection;
mod failure;
mod stream;

pub use client::{Client, Header, Response};
pub use connection::{Connection, PathStatistics, Statistics};
pub use failure::MarlineError;
pub use stream::Stream;

uniffi::setup_scaffolding!("marline_client");
