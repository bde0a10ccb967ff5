//! One cell of the table: a peer, a case and a role.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use interop_relay::Report;
use serde::Serialize;

use crate::cases::{Case, Evidence, Links};
use crate::peers::{Kind, Peer};
use crate::process::Process;
use crate::site::{Identity, NAME, Site};
use crate::testbed::{Seen, Testbed};

/// Time limit for a server to start listening.
const START: Duration = Duration::from_secs(10);
/// Time to keep the testbed after the client's end, so that the close reaches the server.
const LINGER: Duration = Duration::from_millis(200);
/// Exit status of a peer that does not support a case.
const UNSUPPORTED: i32 = 127;

/// The role of the stack under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Server,
    Client,
}

impl Role {
    pub(crate) const ALL: [Self; 2] = [Self::Server, Self::Client];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// The outcome of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub(crate) enum Verdict {
    Passed,
    Failed(String),
    /// The peer does not support it.
    Unsupported(String),
    /// The peer is not available.
    Skipped(String),
}

/// A cell to run.
#[derive(Clone)]
pub(crate) struct Cell<'a> {
    pub(crate) subject: &'static Peer,
    pub(crate) peer: &'static Peer,
    pub(crate) case: &'static Case,
    pub(crate) role: Role,
    pub(crate) site: &'a Site,
    pub(crate) identity: &'a Identity,
    /// Overridden programs of subject and peer.
    pub(crate) marline: Option<&'a Path>,
    pub(crate) interop: &'a Path,
    /// Where logs and downloads go.
    pub(crate) logs: PathBuf,
    pub(crate) seed: u64,
    /// Times that it may be tried.
    pub(crate) tries: u64,
}

/// A cell's result.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) subject: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) case: &'static str,
    pub(crate) role: Role,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// Note about the peer of a cell that passed.
    pub(crate) note: Option<String>,
    pub(crate) duration_s: f64,
    pub(crate) relay: Option<Report>,
    /// Traffic of each link, if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) links: Option<Links>,
}

/// Number of attempts per cell by default. Peers run in real time on a shared machine, so that a single
/// failure under load is not significant. The table lists cells that needed more than one attempt, with the reason.
pub(crate) const TRIES: u64 = 3;

impl Cell<'_> {
    /// Runs the cell, again with other seeds if it fails.
    pub(crate) fn run(&self) -> Outcome {
        let mut outcome = self.run_once();
        for again in 1..self.tries {
            let Verdict::Failed(why) = &outcome.verdict else {
                break;
            };
            let why = format!("needed try {}; the one before: {why}", again + 1);
            let seed = self.seed + again * 1000;
            outcome = Cell {
                seed,
                ..self.clone()
            }
            .run_once();
            outcome.note = Some(match outcome.note.take() {
                Some(note) => format!("{why}; {note}"),
                None => why,
            });
        }
        outcome
    }

    fn run_once(&self) -> Outcome {
        let start = Instant::now();
        let mut seen = Seen::default();
        let mut verdict = self
            .attempt(&mut seen)
            .unwrap_or_else(|error| Verdict::Failed(format!("{error:#}")));
        let mut note = None;
        if verdict == Verdict::Passed {
            match self.case.verify(&self.evidence(&seen)) {
                Ok(noted) => note = noted,
                Err(why) => verdict = Verdict::Failed(why),
            }
        }
        if verdict == Verdict::Passed {
            // Both are large, and not needed for a cell that passed.
            for bulky in ["out", "qlog"] {
                let _ = fs::remove_dir_all(self.logs.join(bulky));
            }
        }
        Outcome {
            subject: self.subject.name,
            peer: self.peer.name,
            case: self.case.name,
            role: self.role,
            verdict,
            note,
            duration_s: start.elapsed().as_secs_f64(),
            relay: seen.relay,
            links: seen.links,
        }
    }

    fn attempt(&self, seen: &mut Seen) -> anyhow::Result<Verdict> {
        let (server, client) = match self.role {
            Role::Server => (self.subject, self.peer),
            Role::Client => (self.peer, self.subject),
        };
        if let Some(why) = self.is_moot() {
            return Ok(Verdict::Unsupported(why.to_owned()));
        }
        let (server_command, client_command) = match (self.command(server), self.command(client)) {
            (Ok(server), Ok(client)) => (server, client),
            (Err(why), _) | (_, Err(why)) => return Ok(Verdict::Skipped(why)),
        };
        if self.logs.exists() {
            fs::remove_dir_all(&self.logs)?;
        }
        let out = self.logs.join("out");
        fs::create_dir_all(&out)?;

        let testbed = match Testbed::build(self.case, self.seed)? {
            Ok(testbed) => testbed,
            Err(why) => return Ok(Verdict::Skipped(why)),
        };
        let command = self.serve(server_command, &testbed);
        let start = |command: &mut Command| testbed.spawn(true, command);
        let mut server = Process::start(command, &self.server_log(), start)?;
        match server.wait_for("listening", START) {
            Ok(None) => {}
            Ok(Some(status)) if status.code() == Some(UNSUPPORTED) => {
                return Ok(unsupported(&server.last_words()));
            }
            Ok(Some(_)) => return Ok(Verdict::Failed(format!("server: {}", server.last_words()))),
            Err(why) => return Ok(Verdict::Failed(format!("server: {why}"))),
        }

        let command = self.download(client_command, &testbed, &out);
        let start = |command: &mut Command| testbed.spawn(false, command);
        let mut client = Process::start(command, &self.logs.join("client.log"), start)?;
        let status = client.wait(self.case.limit)?;
        thread::sleep(LINGER);
        *seen = testbed.finish()?;
        if let Some(report) = &seen.relay {
            let report = serde_json::to_vec_pretty(report)?;
            fs::write(self.logs.join("relay.json"), report)?;
        }

        let verdict = match status {
            None => Verdict::Failed(format!("not done after {} s", self.case.limit.as_secs())),
            Some(status) if status.code() == Some(UNSUPPORTED) => unsupported(&client.last_words()),
            Some(status) if !status.success() => {
                Verdict::Failed(format!("client: {}", client.last_words()))
            }
            Some(_) if self.case.compare => match self.site.compare(&out) {
                Ok(()) => Verdict::Passed,
                Err(why) => Verdict::Failed(why),
            },
            Some(_) => Verdict::Passed,
        };
        Ok(verdict)
    }

    /// Why this cell does not apply, if so.
    pub(crate) fn is_moot(&self) -> Option<&'static str> {
        let peer_serves = self.role == Role::Client;
        let case = self.case.name;
        self.peer
            .stays_out(case, peer_serves)
            .or_else(|| self.subject.stays_out(case, !peer_serves))
    }

    fn server_log(&self) -> PathBuf {
        self.logs.join("server.log")
    }

    fn evidence(&self, seen: &Seen) -> Evidence {
        Evidence {
            report: seen.relay.clone().unwrap_or_default(),
            links: seen.links.unwrap_or_default(),
            server_log: fs::read_to_string(self.server_log()).unwrap_or_default(),
            subject_serves: self.role == Role::Server,
        }
    }

    fn command(&self, peer: &Peer) -> Result<Command, String> {
        let own = self.marline.filter(|_| peer.name == "marline");
        let mut command = peer.command(self.interop, own)?;
        command.env("QLOGDIR", self.logs.join("qlog"));
        Ok(command)
    }

    fn serve(&self, mut command: Command, testbed: &Testbed) -> Command {
        command
            .arg("server")
            .args(["--listen", &testbed.listen().to_string()])
            .arg("--www")
            .arg(&self.site.www)
            .arg("--cert")
            .arg(&self.identity.cert)
            .arg("--key")
            .arg(&self.identity.key)
            .args(["--case", self.case.name]);
        command
    }

    fn download(&self, mut command: Command, testbed: &Testbed, out: &Path) -> Command {
        command
            .arg("client")
            .args(["--case", self.case.name])
            .args(["--server", &testbed.target().to_string()])
            .args(["--name", NAME])
            .arg("--out")
            .arg(out)
            .arg("--paths-from")
            .arg(&self.site.list);
        for address in testbed.addresses() {
            command.args(["--address", &address.to_string()]);
        }
        if self.peer.kind == Kind::Browser {
            command.arg("--cert").arg(&self.identity.cert);
        }
        command
    }
}

fn unsupported(words: &str) -> Verdict {
    let reason = words.strip_prefix("unsupported:").unwrap_or(words).trim();
    Verdict::Unsupported(reason.to_owned())
}
