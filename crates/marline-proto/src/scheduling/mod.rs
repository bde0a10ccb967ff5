//! Scheduling of streams and of paths.

pub mod path;
pub mod stream;
