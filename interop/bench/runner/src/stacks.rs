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
    kind: Kind,
}

/// The kind of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A stack with the protocol of the bench.
    Stack,
    /// The same, whose server takes the congestion controller as an argument.
    With(&'static str),
    /// The command `marline`.
    Command,
    /// No protocol at all.
    Ceiling,
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
        kind: Kind::Stack,
    },
    Stack {
        name: REFERENCE,
        about: "0.11, rustls with aws-lc-rs",
        program: "bench-quinn",
        tasks: &Task::ALL,
        kind: Kind::Stack,
    },
    Stack {
        name: "noq",
        about: "1.4, rustls with aws-lc-rs",
        program: "bench-noq",
        tasks: &Task::ALL,
        kind: Kind::Stack,
    },
    Stack {
        name: "s2n-quic",
        about: "1.91, rustls with aws-lc-rs",
        program: "bench-s2n-quic",
        tasks: &Task::ALL,
        kind: Kind::Stack,
    },
    Stack {
        name: "quiche",
        about: "0.30, BoringSSL, a loop of our own with large GSO batches, no pacing",
        program: "../quiche/release/bench-quiche",
        tasks: &Task::ALL,
        kind: Kind::Stack,
    },
    Stack {
        name: "quic-go",
        about: "0.65, Go's cryptography, Reno (it has no CUBIC), one thread for Go code",
        program: "../bench-quic-go",
        tasks: &Task::ALL,
        kind: Kind::Stack,
    },
    Stack {
        name: "tcp-cubic",
        about: "the kernel's TCP with CUBIC, TLS 1.3 by rustls with aws-lc-rs",
        program: "bench-tcp",
        tasks: &[],
        kind: Kind::With("cubic"),
    },
    Stack {
        name: "tcp-bbr",
        about: "the same with the kernel's BBR",
        program: "bench-tcp",
        tasks: &[],
        kind: Kind::With("bbr"),
    },
    Stack {
        name: "marline-cubic",
        about: "this project with `cc = \"cubic\"`",
        program: "bench-marline",
        tasks: &[],
        kind: Kind::With("cubic"),
    },
    Stack {
        name: "marline-command",
        about: "`marline serve` and `marline get`, over HTTP/3, with the start of the program that fetches",
        program: "marline",
        tasks: &[],
        kind: Kind::Command,
    },
    Stack {
        name: CEILING,
        about: "UDP with GSO and GRO, AES-128-GCM and header protection, nothing else",
        program: "bench-ceiling",
        tasks: &[Task::Bulk],
        kind: Kind::Ceiling,
    },
];

impl Stack {
    /// The program, if it is built.
    pub(crate) fn program(&self, programs: &Path) -> Option<PathBuf> {
        let path = programs.join(self.program);
        path.is_file().then_some(path)
    }

    /// Whether the stack fetches over links.
    pub(crate) fn fetches(&self) -> bool {
        self.kind != Kind::Ceiling
    }

    /// The congestion controller that its server takes as an argument.
    pub(crate) fn congestion(&self) -> Option<&'static str> {
        match self.kind {
            Kind::With(name) => Some(name),
            _ => None,
        }
    }

    /// Whether it is a command with HTTP instead of the protocol of the bench.
    pub(crate) fn is_command(&self) -> bool {
        self.kind == Kind::Command
    }

    /// Whether the stack supports `task`.
    pub(crate) fn able(&self, task: Task) -> bool {
        self.tasks.contains(&task)
    }
}
