//! `marline lab`.

mod link;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Try programs and transports on links that anybody can have
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Link(Box<link::Arguments>),
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::Link(arguments) => link::run(*arguments),
    }
}
