//! Doing what a scenario says, on any runtime.

mod probe;

pub use probe::{Fluctuation, Probe, Seen, Strand};
