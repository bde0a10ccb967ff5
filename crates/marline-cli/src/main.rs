//! The `marline` command.

/// An allocator that returns memory after a flood of requests: small allocations that remain do not keep the memory
/// around them in use, as they do with glibc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    marline_cli::main()
}
