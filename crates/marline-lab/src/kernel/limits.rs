//! Limits of machines in virtual time, and their reasons.

use std::time::Duration;

/// Memory of a machine: enough for a program of the laboratory, a server and a client. Pages that nothing touches cost
/// nothing.
pub(super) const MEMORY: &str = "1G";

/// Real time after which a run of a job is ended: a hundred times that of the longest runs of the laboratory. A thread
/// that computes without end, or reads the clock until it moves, would stop virtual time.
pub(super) const RUN: Duration = Duration::from_secs(60 * 60);

/// Bytes of console that errors quote: the last lines of a panic of the kernel.
pub(super) const CONSOLE: usize = 2_000;

/// Bytes of each stream that a task may print: they are held in memory, and a JSON answer with time series has some MiB.
pub(super) const PRINTED: u64 = 1 << 30;
