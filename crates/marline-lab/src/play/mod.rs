//! Doing what a scenario says, on any runtime.
