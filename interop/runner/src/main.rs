//! Runs every peer, case and role, and writes the table.

mod cases;
mod cell;
#[cfg(target_os = "linux")]
mod network;
#[cfg(not(target_os = "linux"))]
#[path = "network/unsupported.rs"]
mod network;
mod peers;
mod process;
mod site;
mod table;
mod testbed;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::Context as _;
use clap::Parser;
use serde::Serialize;

use crate::cases::{CASES, Case};
use crate::cell::{Cell, Outcome, Role, Verdict};
use crate::peers::{Kind, PEERS, Peer};
use crate::site::{Identity, Site};
use crate::table::Section;

/// Runs QUIC interoperability cases, over loopback or between network namespaces.
#[derive(Parser)]
struct Cli {
    /// The stack under test; repeatable.
    #[arg(long, default_values = ["marline", "command"])]
    subject: Vec<String>,
    /// Program that plays marline, if not the one built here.
    #[arg(long)]
    marline: Option<PathBuf>,
    /// Only this peer; repeatable.
    #[arg(long)]
    peer: Vec<String>,
    /// Only this case; repeatable.
    #[arg(long)]
    case: Vec<String>,
    /// Only this role of the subject: server or client.
    #[arg(long)]
    role: Option<String>,
    /// Cells run at once; by default four for each processor, because most wait more than they work.
    #[arg(long, default_value_t = 4 * thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
    /// Write the table to this Markdown file.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write every cell's result to this JSON file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Where each cell keeps its logs.
    #[arg(long)]
    logs: Option<PathBuf>,
    /// Seed of all that is random on the links.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Times that a cell may be tried, each time with another seed; the logs are of the last.
    #[arg(long, default_value_t = cell::TRIES)]
    tries: u64,
    /// The directory `interop/`.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    interop: PathBuf,
}

/// The document that `--json` writes.
#[derive(Serialize)]
struct Results<'a> {
    seed: u64,
    cells: &'a [Outcome],
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    let interop = cli.interop.canonicalize().context("--interop")?;
    let logs = cli.logs.clone().unwrap_or_else(|| interop.join("logs"));
    fs::create_dir_all(&logs)?;
    let logs = logs.canonicalize()?;

    let cases = select(&cli.case, CASES, "case", |case| case.name)?;
    if cases.iter().any(|case| case.two_links) {
        network::prepare();
    }
    let wanted: Vec<String> = cli.role.iter().cloned().collect();
    let roles: Vec<Role> = select(&wanted, &Role::ALL, "role", |role| role.name())?
        .into_iter()
        .copied()
        .collect();

    let sections = sections(&cli, &cases)?;

    let small = Identity::create(&logs.join("identity/small"), false)?;
    let large = Identity::create(&logs.join("identity/large"), true)?;
    let mut sites = BTreeMap::new();
    for case in &cases {
        sites.insert(
            case.name,
            Site::create(&logs.join("sites").join(case.name), case)?,
        );
    }

    let mut cells = Vec::new();
    for (role, section) in product(&roles, &sections) {
        for (case, &peer) in product(&section.cases, &section.peers) {
            let subject = section.subject;
            if peer.name == subject.name && *role != roles[0] {
                // One cell covers both roles.
                continue;
            }
            if !case.is_about(subject.name, *role == Role::Server) {
                continue;
            }
            cells.push(Cell {
                subject,
                peer,
                case,
                role: *role,
                site: &sites[case.name],
                identity: if case.large_certificate {
                    &large
                } else {
                    &small
                },
                marline: cli.marline.as_deref(),
                interop: &interop,
                logs: cell_logs(&logs, subject, *role, peer, case),
                seed: cli.seed,
                tries: cli.tries,
            });
        }
    }
    let start = Instant::now();
    let outcomes = run_all(&cells, cli.jobs.max(1));

    if let Some(out) = &cli.out {
        let text = table::render(&sections, &roles, &outcomes, &interop);
        if let Some(parent) = out.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(out, text).with_context(|| out.display().to_string())?;
    }
    if let Some(json) = &cli.json {
        let results = Results {
            seed: cli.seed,
            cells: &outcomes,
        };
        fs::write(json, serde_json::to_vec_pretty(&results)?)?;
    }
    // For the summary of the gate: what was not run, and why.
    let reasons = outcomes
        .iter()
        .filter_map(|outcome| match &outcome.verdict {
            Verdict::Skipped(why) => Some(why),
            _ => None,
        });
    for why in reasons.collect::<BTreeSet<_>>() {
        eprintln!("skipped: {why}");
    }
    let count = |kind: fn(&Verdict) -> bool| outcomes.iter().filter(|o| kind(&o.verdict)).count();
    let has_failed: fn(&Verdict) -> bool = |verdict| matches!(verdict, Verdict::Failed(_));
    let failed = count(has_failed);
    // Once more, because hundreds of cells may have ended since.
    for outcome in outcomes.iter().filter(|o| has_failed(&o.verdict)) {
        announce(outcome);
    }
    eprintln!(
        "interop: {} passed, {failed} failed, {} not supported, {} skipped, in {:.0} s",
        count(|verdict| *verdict == Verdict::Passed),
        count(|verdict| matches!(verdict, Verdict::Unsupported(_))),
        count(|verdict| matches!(verdict, Verdict::Skipped(_))),
        start.elapsed().as_secs_f64(),
    );
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Sections of the report: peers and cases for each subject.
fn sections(cli: &Cli, cases: &[&'static Case]) -> anyhow::Result<Vec<Section>> {
    let named = select(&cli.peer, PEERS, "peer", |peer| peer.name)?;
    let mut sections = Vec::new();
    for name in &cli.subject {
        let subject = Peer::named(name).with_context(|| unknown("subject", name))?;
        // marline is tested against itself; other stacks against themselves and marline only on request.
        let meets = |peer: &&Peer| match peer.kind {
            Kind::Command => false,
            _ if !cli.peer.is_empty() || subject.name == "marline" => true,
            _ => peer.name != subject.name && peer.name != "marline",
        };
        let takes_part = |case: &&Case| {
            let is_about = |role: &Role| case.is_about(subject.name, *role == Role::Server);
            Role::ALL.iter().any(is_about) && subject.stays_out(case.name, true).is_none()
        };
        let section = Section {
            subject,
            peers: named.iter().copied().filter(meets).collect(),
            cases: cases.iter().copied().filter(takes_part).collect(),
        };
        if !section.cases.is_empty() && !section.peers.is_empty() {
            sections.push(section);
        }
    }
    Ok(sections)
}

fn product<'a, A, B>(a: &'a [A], b: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    a.iter()
        .flat_map(move |left| b.iter().map(move |right| (left, right)))
}

fn unknown(what: &str, name: &str) -> String {
    format!("there is no {what} {name:?}")
}

/// The entries of `all` with the given names, or all if no names are given.
fn select<'a, T>(
    wanted: &[String],
    all: &'a [T],
    what: &str,
    name: fn(&T) -> &'static str,
) -> anyhow::Result<Vec<&'a T>> {
    for word in wanted {
        anyhow::ensure!(
            all.iter().any(|entry| name(entry) == word),
            unknown(what, word)
        );
    }
    let is_wanted = |entry: &&T| wanted.is_empty() || wanted.iter().any(|word| word == name(entry));
    Ok(all.iter().filter(is_wanted).collect())
}

fn cell_logs(logs: &Path, subject: &Peer, role: Role, peer: &Peer, case: &Case) -> PathBuf {
    logs.join(subject.name)
        .join(role.name())
        .join(peer.name)
        .join(case.name)
}

/// The number of cells with two links that run at once: links are emulated in real time, and delay each other.
const EMULATIONS: usize = 2;

/// Runs `cells` on `jobs` threads and reports each as it ends.
fn run_all(cells: &[Cell<'_>], jobs: usize) -> Vec<Outcome> {
    let (emulated, mut relayed): (Vec<_>, Vec<_>) =
        cells.iter().partition(|cell| cell.case.two_links);
    // What may take long comes first, so that nothing else waits for it in the end.
    relayed.sort_by_key(|cell| Reverse(cell.case.limit));
    let queues = [Queue::new(emulated), Queue::new(relayed)];
    let outcomes = Mutex::new(Vec::with_capacity(cells.len()));
    thread::scope(|scope| {
        for job in 0..jobs {
            let queues = &queues[usize::from(job >= EMULATIONS)..];
            let outcomes = &outcomes;
            scope.spawn(move || {
                while let Some(cell) = queues.iter().find_map(Queue::next) {
                    let outcome = cell.run();
                    if cell.is_moot().is_none() {
                        announce(&outcome);
                    }
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_default()
}

/// Cells that threads take one after another.
struct Queue<'a> {
    cells: Vec<&'a Cell<'a>>,
    next: AtomicUsize,
}

impl<'a> Queue<'a> {
    fn new(cells: Vec<&'a Cell<'a>>) -> Self {
        Self {
            cells,
            next: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> Option<&'a Cell<'a>> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        self.cells.get(index).copied()
    }
}

fn announce(outcome: &Outcome) {
    let note = outcome.note.as_deref().unwrap_or("");
    let (word, why) = match &outcome.verdict {
        Verdict::Passed => ("passed", note),
        Verdict::Failed(why) => ("FAILED", why.as_str()),
        Verdict::Unsupported(why) => ("not supported", why.as_str()),
        Verdict::Skipped(why) => ("skipped", why.as_str()),
    };
    let colon = if why.is_empty() { "" } else { ": " };
    eprintln!(
        "{:<7} {:<6} {:<9} {:<20} {word}{colon}{why} ({:.1} s)",
        outcome.subject,
        outcome.role.name(),
        outcome.peer,
        outcome.case,
        outcome.duration_s
    );
}
