//! The `marline` command.

fn main() -> std::process::ExitCode {
    marline_cli::main()
}
