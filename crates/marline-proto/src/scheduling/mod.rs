//! Which stream sends next, and on which path.

pub mod path;
pub mod stream;
