//! The `marline` command with a congestion controller, a path scheduler and a link model of one's own.
//!
//! `docs/own-policies.md` builds it in a crate of its own.

mod drx;
mod least_filled;
mod scalable;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use marline_lab::Registry;

fn main() -> ExitCode {
    marline_cli::main_with(own())
}

fn own() -> Registry {
    Registry::default()
        .controller(&scalable::ENTRY)
        .path_scheduler(&least_filled::ENTRY)
        .link_model(&drx::ENTRY)
}
