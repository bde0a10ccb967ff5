//! Traffic that nobody asked for.
