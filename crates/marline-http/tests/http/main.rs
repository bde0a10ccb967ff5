//! Servers and clients of each version of HTTP in one process.

mod common;
mod files;
mod transfers;
