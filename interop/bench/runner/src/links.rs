//! Downloads over emulated links, one after the other: the stacks in turn over each link, in rounds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::args::{Args, NamedLink};
use crate::identity::Identity;
use crate::stacks::Stack;
use crate::statistics::median;
use crate::trial::Report;

/// The address of the server in the emulator's network, and its port.
pub(crate) const SERVER: &str = "10.77.0.1:14440";
/// Time limit of a download, in seconds.
pub(crate) const LIMIT: &str = "120";

/// One download.
#[derive(Clone, Copy, Debug, Serialize)]
struct Download {
    mbit_s: f64,
    /// Whether the emulator delivered packets in time.
    valid: bool,
}

/// Downloads by stack and link, in the order of rounds.
#[derive(Default, Serialize)]
struct Downloads {
    links: Vec<String>,
    rounds: usize,
    bytes: u64,
    stacks: BTreeMap<&'static str, BTreeMap<String, Vec<Download>>>,
    failures: Vec<String>,
}

/// The output of `marline lab link --json` for a run.
#[derive(Deserialize)]
pub(crate) struct Emulation {
    pub(crate) valid: bool,
}

/// The table of all downloads, and the same as JSON.
pub(crate) struct Measured {
    pub(crate) table: String,
    pub(crate) json: String,
    pub(crate) succeeded: bool,
}

/// Measures all stacks over all links.
pub(crate) fn measure(
    args: &Args,
    stacks: &[&Stack],
    identity: &Identity,
) -> anyhow::Result<Measured> {
    let emulator = args.emulator()?;
    let downloader = Downloader {
        emulator: &emulator,
        args,
        identity,
    };
    let mut downloads = Downloads {
        links: args
            .links
            .iter()
            .map(|link| format!("{}: {}", link.name, link.spec))
            .collect(),
        rounds: args.rounds,
        bytes: args.link_bytes,
        ..Downloads::default()
    };
    for round in 0..args.rounds {
        for link in &args.links {
            for turn in 0..stacks.len() {
                // The order is rotated in each round.
                let stack = stacks[(turn + round) % stacks.len()];
                let label = format!("round {} {} {}", round + 1, link.name, stack.name);
                match downloader.download(stack, link, round) {
                    Ok(one) => {
                        let late = if one.valid { "" } else { ", packets were late" };
                        eprintln!("{label}: {:.1} Mbit/s{late}", one.mbit_s);
                        let of_stack = downloads.stacks.entry(stack.name).or_default();
                        of_stack.entry(link.name.clone()).or_default().push(one);
                    }
                    Err(error) => {
                        eprintln!("{label}: failed: {error:#}");
                        downloads.failures.push(format!("{label}: {error:#}"));
                    }
                }
            }
        }
    }
    Ok(Measured {
        table: downloads.table(args, stacks),
        json: serde_json::to_string_pretty(&downloads)? + "\n",
        succeeded: downloads.failures.is_empty(),
    })
}

/// The setup of downloads over emulated links.
struct Downloader<'a> {
    emulator: &'a Path,
    args: &'a Args,
    identity: &'a Identity,
}

impl Downloader<'_> {
    /// Downloads once with `stack` over `link`.
    fn download(&self, stack: &Stack, link: &NamedLink, round: usize) -> anyhow::Result<Download> {
        let program = stack.program(&self.args.programs).context("not built")?;
        // The server ends with its standard input, the pipe with the emulator.
        let server = format!(
            "sleep {LIMIT} | {} server --listen {SERVER} --cert {} --key {}",
            program.display(),
            self.identity.cert.display(),
            self.identity.key.display(),
        );
        let output = Command::new("timeout")
            .arg(LIMIT)
            .arg(self.emulator)
            .args(["lab", "link", "--json", "--link", &link.spec])
            .args(["--seed", &(round + 1).to_string(), "--server", &server])
            .arg("--")
            .arg(program)
            .args(["client", "--server", SERVER, "--task", "bulk", "--bytes"])
            .arg(self.args.link_bytes.to_string())
            .output()
            .context("timeout")?;
        // With --json, what the client prints is on standard error.
        let printed = String::from_utf8_lossy(&output.stderr);
        let report = printed.lines().find(|line| line.starts_with("{\"bytes\""));
        let last = || printed.lines().last().unwrap_or_default().to_owned();
        let report: Report = serde_json::from_str(report.with_context(last)?)?;
        let emulation: Emulation = serde_json::from_slice(&output.stdout).context("emulator")?;
        Ok(Download {
            mbit_s: report.bytes * 8e-6 / report.seconds,
            valid: emulation.valid,
        })
    }
}

impl Downloads {
    /// Medians in Mbit/s over the links, and as parts of those over the first link.
    fn table(&self, args: &Args, stacks: &[&Stack]) -> String {
        let mut text = String::from("| stack |");
        for (index, link) in args.links.iter().enumerate() {
            let beside = if index == 0 { "" } else { " (of the first)" };
            text += &format!(" {}{beside} |", link.name);
        }
        text += "\n| --- |";
        text += &" ---: |".repeat(args.links.len());
        for stack in stacks {
            text += &format!("\n| {} |", stack.name);
            for (index, link) in args.links.iter().enumerate() {
                text += &format!(" {} |", self.cell(stack, link, index, args));
            }
        }
        let late: usize = self.of_all().filter(|one| !one.valid).count();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n\nMbit/s: medians of {} rounds with downloads of {} bytes, each on a new connection, its handshake not \
             counted; of {} downloads, {late} had packets that the emulator delivered late.\n",
            self.rounds,
            self.bytes,
            self.of_all().count(),
        );
        for link in &self.links {
            let _ = writeln!(text, "* {link}");
        }
        for failure in &self.failures {
            let _ = writeln!(text, "* failed: {failure}");
        }
        text
    }

    fn cell(&self, stack: &Stack, link: &NamedLink, index: usize, args: &Args) -> String {
        let Some(over) = self.median(stack, &link.name) else {
            return String::new();
        };
        let first = args.links.first().filter(|_| index > 0);
        match first.and_then(|first| self.median(stack, &first.name)) {
            Some(first) => format!("{over:.1} ({:.2})", over / first),
            None => format!("{over:.1}"),
        }
    }

    fn median(&self, stack: &Stack, link: &str) -> Option<f64> {
        let downloads = self.stacks.get(stack.name)?.get(link)?;
        median(downloads.iter().map(|one| one.mbit_s).collect())
    }

    fn of_all(&self) -> impl Iterator<Item = &Download> {
        let links = self.stacks.values().flat_map(BTreeMap::values);
        links.flatten()
    }
}
