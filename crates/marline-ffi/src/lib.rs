//! The client of marline for C.
//!
//! `include/marline.h` is written from this crate, and is its documentation. Functions check their pointers for null, and
//! otherwise trust the caller, as C does.
#![expect(
    unsafe_code,
    reason = "callers hand over pointers, and symbols have names of C"
)]
#![expect(
    clippy::missing_safety_doc,
    reason = "the header says what holds for all pointers"
)]

pub mod client;
pub mod connection;
pub mod failure;
mod limit;
pub mod options;
pub mod response;
pub mod stream;
