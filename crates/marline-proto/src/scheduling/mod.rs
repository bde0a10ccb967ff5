//! Who sends next.

pub mod stream;
