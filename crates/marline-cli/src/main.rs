//! The `marline` command.

/// A server gives back what it has needed for a flood of requests: small allocations that stay do not keep the memory around them, as
/// they do with that of glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    marline_cli::main()
}
