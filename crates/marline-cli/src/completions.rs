//! `marline completions`.

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Print completions for a shell
///
/// The shell then completes verbs, flags and their values.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline completions bash > ~/.local/share/bash-completion/completions/marline\n  \
    marline completions zsh > ~/.zfunc/_marline\n  \
    marline completions fish > ~/.config/fish/completions/marline.fish")]
pub(crate) struct Arguments {
    /// The shell
    shell: Supported,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Supported {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(arguments: &Arguments, mut root: Command) -> Result<(), Failure> {
    let shell = match arguments.shell {
        Supported::Bash => Shell::Bash,
        Supported::Zsh => Shell::Zsh,
        Supported::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut root, "marline", &mut script);
    output::write(&script)
}
