//! The stacks, as data.

use std::path::{Path, PathBuf};

use crate::task::Task;

/// A stack and its program.
pub(crate) struct Stack {
    pub(crate) name: &'static str,
    /// Name in the table.
    pub(crate) about: &'static str,
    /// Relative to the directory of programs.
    program: &'static str,
    tasks: &'static [Task],
}

/// The stack that others are compared with.
pub(crate) const REFERENCE: &str = "quinn";
/// The upper bound of the machine.
pub(crate) const CEILING: &str = "ceiling";

/// All of them.
pub(crate) const ALL: &[Stack] = &[
    Stack {
        name: "marline",
        about: "this project",
        program: "bench-marline",
        tasks: &Task::ALL,
    },
    Stack {
        name: REFERENCE,
        about: "0.11, rustls with aws-lc-rs",
        program: "bench-quinn",
        tasks: &Task::ALL,
    },
    Stack {
        name: "noq",
        about: "1.4, rustls with aws-lc-rs",
        program: "bench-noq",
        tasks: &Task::ALL,
    },
    Stack {
        name: "s2n-quic",
        about: "1.91, rustls with aws-lc-rs",
        program: "bench-s2n-quic",
        tasks: &Task::ALL,
    },
    Stack {
        name: "quiche",
        about: "0.30, BoringSSL, a loop of our own with large GSO batches, no pacing",
        program: "../quiche/release/bench-quiche",
        tasks: &Task::ALL,
    },
    Stack {
        name: "quic-go",
        about: "0.65, Go's cryptography, Reno (it has no CUBIC), one thread for Go code",
        program: "../bench-quic-go",
        tasks: &Task::ALL,
    },
    Stack {
        name: CEILING,
        about: "UDP with GSO and GRO, AES-128-GCM and header protection, nothing else",
        program: "bench-ceiling",
        tasks: &[Task::Bulk],
    },
];

impl Stack {
    /// The program, if it is built.
    pub(crate) fn program(&self, programs: &Path) -> Option<PathBuf> {
        let path = programs.join(self.program);
        path.is_file().then_some(path)
    }

    /// Whether the stack supports `task`.
    pub(crate) fn able(&self, task: Task) -> bool {
        self.tasks.contains(&task)
    }
}
