//! Who sends next, and where.

pub mod path;
pub mod stream;
