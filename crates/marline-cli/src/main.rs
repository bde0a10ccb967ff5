//! The `marline` command.
fn main() {}
