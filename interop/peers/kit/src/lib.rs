//! Shared code of interop peers in Rust.
//!
//! A peer is a program with two subcommands, `server` and `client` ([`cli`]), that serves or downloads files over
//! HTTP/3 ([`files`]) and reports success by its exit status ([`outcome`]). With the feature `h3` there is
//! also a file server and a downloader over any [`h3::quic::Connection`].

pub mod cli;
pub mod files;
pub mod outcome;

#[cfg(feature = "h3")]
pub mod client;
#[cfg(feature = "h3")]
pub mod multipath;
#[cfg(feature = "h3")]
pub mod server;
#[cfg(feature = "h3")]
pub mod tls;

pub use cli::{ClientArgs, Command, ServerArgs};
pub use outcome::{Failure, Outcome};
