//! The peers as data.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A stack to run against.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Its name in the table.
    pub(crate) title: &'static str,
    /// Program and leading arguments; paths are relative to `interop/`.
    program: &'static [&'static str],
    /// The source of its version.
    version: Version,
    pub(crate) kind: Kind,
    /// Whether it supports multipath.
    multipath: bool,
    /// Why a connection cannot change to version 2 with it, if so.
    lacks_v2: Option<&'static str>,
    /// Why its server does not support a change of the client's address, if so.
    lacks_rebinding: Option<&'static str>,
}

/// The cases of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every case, in both roles.
    Stack,
    /// Every case, as a server only.
    Server,
    /// Every case, as a client only.
    Client,
    /// A client only, for the cases it has.
    Browser,
    /// End-user programs, as subject only, for cases that need no switch.
    Command,
}

/// Cases a browser takes part in.
const BROWSER_CASES: &[&str] = &["http3"];

/// Cases that `marline serve` and `marline get` take part in, those with pools as a client only.
const COMMAND_CASES: &[&str] = &[
    "transfer",
    "multiplexing",
    "http3",
    "transferloss",
    "ipv6",
    "pipes-rr",
    "pipes-cba",
];

/// Whether the server, or the client, must support multipath for `case`.
fn needs_multipath(case: &str, serves: bool) -> bool {
    match case {
        "multipath-client-only" => !serves,
        "multipath-server-only" => serves,
        _ => case.starts_with("multipath"),
    }
}

enum Version {
    /// A package of `Cargo.lock`.
    Crate(&'static str),
    /// A module of `peers/quic-go/go.mod`.
    Module(&'static str),
    /// A line of `peers/aioquic/requirements.txt`.
    Requirement(&'static str),
    /// The output of a program that is installed.
    Asked(&'static str),
    /// The output of the peer's own program.
    Reported,
    /// Not reported.
    Own,
}

/// All peers. The subject is one of them.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "marline",
        title: "marline",
        program: &["../target/debug/peer-marline"],
        version: Version::Own,
        kind: Kind::Stack,
        multipath: true,
        lacks_v2: None,
        lacks_rebinding: None,
    },
    Peer {
        name: "quinn",
        title: "quinn with h3-quinn",
        program: &["../target/debug/peer-quinn"],
        version: Version::Crate("quinn"),
        kind: Kind::Stack,
        multipath: false,
        lacks_v2: Some("quinn has no version 2"),
        lacks_rebinding: None,
    },
    Peer {
        name: "noq",
        title: "noq with h3",
        program: &["../target/debug/peer-noq"],
        version: Version::Crate("noq"),
        kind: Kind::Stack,
        multipath: true,
        lacks_v2: Some("noq has no version 2"),
        lacks_rebinding: None,
    },
    Peer {
        name: "quiche",
        title: "quiche",
        program: &["../target/quiche/debug/peer-quiche"],
        version: Version::Crate("quiche"),
        kind: Kind::Stack,
        multipath: false,
        lacks_v2: Some("quiche has no version 2"),
        lacks_rebinding: Some(
            "quiche sometimes never repeats what was lost when the client's address changed",
        ),
    },
    Peer {
        name: "aioquic",
        title: "aioquic",
        program: &[".venv/bin/python", "peers/aioquic/peer.py"],
        version: Version::Requirement("aioquic"),
        kind: Kind::Stack,
        multipath: false,
        lacks_v2: None,
        lacks_rebinding: None,
    },
    Peer {
        name: "quic-go",
        title: "quic-go",
        program: &["../target/peer-quic-go"],
        version: Version::Module("github.com/quic-go/quic-go"),
        kind: Kind::Stack,
        multipath: false,
        lacks_v2: Some("quic-go has version 2, and never changes the version of a connection"),
        lacks_rebinding: None,
    },
    Peer {
        name: "s2n-quic",
        title: "s2n-quic with h3",
        program: &["../target/debug/peer-s2n-quic"],
        version: Version::Crate("s2n-quic"),
        kind: Kind::Stack,
        multipath: false,
        lacks_v2: Some("s2n-quic has no version 2"),
        lacks_rebinding: None,
    },
    Peer {
        name: "nginx",
        title: "nginx",
        program: &["../target/debug/peer-nginx", "../target/nginx/nginx"],
        version: Version::Crate("nginx-src"),
        kind: Kind::Server,
        multipath: false,
        lacks_v2: Some("nginx has no version 2"),
        lacks_rebinding: None,
    },
    Peer {
        name: "curl",
        title: "curl with ngtcp2",
        program: &[".venv/bin/python", "peers/curl/peer.py"],
        version: Version::Reported,
        kind: Kind::Client,
        multipath: false,
        lacks_v2: Some("libcurl uses ngtcp2 with version 1 only"),
        lacks_rebinding: None,
    },
    Peer {
        name: "chromium",
        title: "Chromium",
        program: &[".venv/bin/python", "chromium/page_load.py"],
        version: Version::Asked("chromium"),
        kind: Kind::Browser,
        multipath: false,
        lacks_v2: None,
        lacks_rebinding: None,
    },
    Peer {
        name: "command",
        title: "the command",
        program: &["../target/debug/peer-command", "../target/debug/marline"],
        version: Version::Own,
        kind: Kind::Command,
        multipath: false,
        lacks_v2: None,
        lacks_rebinding: None,
    },
];

impl Peer {
    /// The peer of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        PEERS.iter().find(|peer| peer.name == name)
    }

    /// Its name in the table as the stack under test.
    pub(crate) fn title_as(&self, serves: bool) -> &'static str {
        match self.kind {
            Kind::Command if serves => "`marline serve`",
            Kind::Command => "`marline get`",
            Kind::Stack | Kind::Server | Kind::Client | Kind::Browser => self.title,
        }
    }

    /// Whether it has the role given by `serves`.
    pub(crate) fn plays(&self, serves: bool) -> bool {
        match self.kind {
            Kind::Stack | Kind::Command => true,
            Kind::Server => serves,
            Kind::Client | Kind::Browser => !serves,
        }
    }

    /// Why it does not take part in `case` in the role given by `serves`, if so.
    pub(crate) fn stays_out(&self, case: &str, serves: bool) -> Option<&'static str> {
        match self.kind {
            Kind::Server if !serves => Some("it is a server only"),
            Kind::Client | Kind::Browser if serves => Some("it is a client only"),
            Kind::Browser if !BROWSER_CASES.contains(&case) => {
                Some("a browser has no switch for it")
            }
            Kind::Command if !COMMAND_CASES.contains(&case) => Some("no flag for it"),
            Kind::Stack | Kind::Server | Kind::Client
                if !self.multipath && needs_multipath(case, serves) =>
            {
                Some("its connections have one path")
            }
            Kind::Stack | Kind::Server | Kind::Client if case == "v2" => self.lacks_v2,
            Kind::Stack if serves && case.starts_with("rebind") => self.lacks_rebinding,
            _ => None,
        }
    }

    /// A command that starts the peer, or why there is none.
    pub(crate) fn command(&self, interop: &Path, own: Option<&Path>) -> Result<Command, String> {
        let parts: Vec<PathBuf> = match own {
            Some(path) => vec![path.to_owned()],
            None => self.program.iter().map(|part| interop.join(part)).collect(),
        };
        if let Some(missing) = parts.iter().find(|part| !part.exists()) {
            return Err(format!("{} is not there: make peers", missing.display()));
        }
        if let Version::Asked(program) = self.version
            && Command::new(program).arg("--version").output().is_err()
        {
            return Err(format!("{program} is not installed"));
        }
        let mut parts = parts.into_iter();
        let mut command = Command::new(parts.next().unwrap_or_default());
        command.args(parts);
        Ok(command)
    }

    /// Name and version, as far as it is known.
    pub(crate) fn label(&self, interop: &Path) -> String {
        match self.read_version(interop) {
            Some(version) => format!("{} {version}", self.title),
            None => self.title.to_owned(),
        }
    }

    fn read_version(&self, interop: &Path) -> Option<String> {
        match self.version {
            Version::Crate(name) => {
                let lock = fs::read_to_string(interop.join("Cargo.lock")).ok()?;
                let rest = lock
                    .split(&format!("name = \"{name}\"\nversion = \""))
                    .nth(1)?;
                let version = rest.split('"').next()?;
                // A crate of another program's source has that program's version as its build metadata.
                Some(version.rsplit('+').next()?.to_owned())
            }
            Version::Module(name) => {
                let modules = fs::read_to_string(interop.join("peers/quic-go/go.mod")).ok()?;
                let rest = modules.split(&format!("{name} v")).nth(1)?;
                Some(rest.split_whitespace().next()?.to_owned())
            }
            Version::Requirement(name) => {
                let list = interop.join("peers/aioquic/requirements.txt");
                let list = fs::read_to_string(list).ok()?;
                let line = list.lines().find_map(|line| line.strip_prefix(name))?;
                Some(line.strip_prefix("==")?.to_owned())
            }
            Version::Asked(program) => {
                let output = Command::new(program).arg("--version").output().ok()?;
                let text = String::from_utf8(output.stdout).ok()?;
                Some(text.split_whitespace().nth(1)?.to_owned())
            }
            Version::Reported => {
                let output = self.command(interop, None).ok()?.arg("--version").output();
                let text = String::from_utf8(output.ok()?.stdout).ok()?;
                Some(text.split_whitespace().nth(1)?.to_owned())
            }
            Version::Own => None,
        }
    }
}
