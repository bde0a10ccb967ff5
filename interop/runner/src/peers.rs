//! The peers as data.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A stack to run against.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// What the table calls it.
    pub(crate) title: &'static str,
    /// Program and leading arguments; paths are below `interop/`.
    program: &'static [&'static str],
    /// Where its version is written.
    version: Version,
    /// Whether it is a browser: a client only, for the cases it has.
    pub(crate) browser: bool,
}

enum Version {
    /// A package of `Cargo.lock`.
    Crate(&'static str),
    /// A module of `peers/quic-go/go.mod`.
    Module(&'static str),
    /// A line of `peers/aioquic/requirements.txt`.
    Requirement(&'static str),
    /// What a program prints.
    Asked(&'static str),
    /// Of no interest.
    Own,
}

/// Cases a browser takes part in.
pub(crate) const BROWSER_CASES: &[&str] = &["http3"];

/// All peers. The subject is one of them.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "marline",
        title: "marline",
        program: &["target/release/peer-marline"],
        version: Version::Own,
        browser: false,
    },
    Peer {
        name: "quinn",
        title: "quinn with h3-quinn",
        program: &["target/release/peer-quinn"],
        version: Version::Crate("quinn"),
        browser: false,
    },
    Peer {
        name: "noq",
        title: "noq with h3",
        program: &["target/release/peer-noq"],
        version: Version::Crate("noq"),
        browser: false,
    },
    Peer {
        name: "quiche",
        title: "quiche",
        program: &["target/quiche/release/peer-quiche"],
        version: Version::Crate("quiche"),
        browser: false,
    },
    Peer {
        name: "aioquic",
        title: "aioquic",
        program: &[".venv/bin/python", "peers/aioquic/peer.py"],
        version: Version::Requirement("aioquic"),
        browser: false,
    },
    Peer {
        name: "quic-go",
        title: "quic-go",
        program: &["target/peer-quic-go"],
        version: Version::Module("github.com/quic-go/quic-go"),
        browser: false,
    },
    Peer {
        name: "chromium",
        title: "Chromium",
        program: &[".venv/bin/python", "chromium/page_load.py"],
        version: Version::Asked("chromium"),
        browser: true,
    },
];

impl Peer {
    /// The peer of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        PEERS.iter().find(|peer| peer.name == name)
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
                Some(rest.split('"').next()?.to_owned())
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
            Version::Own => None,
        }
    }
}
