//! Runs every peer, case and role, and writes the table.

mod cases;
mod cell;
mod peers;
mod process;
mod site;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;
use clap::Parser;
use serde::Serialize;

use crate::cases::{CASES, Case};
use crate::cell::{Cell, Outcome, Role, Verdict};
use crate::peers::{PEERS, Peer};
use crate::site::{Identity, Site};

/// Runs QUIC interoperability cases over loopback.
#[derive(Parser)]
struct Cli {
    /// The stack under test.
    #[arg(long, default_value = "marline")]
    subject: String,
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
    /// Cells run at once.
    #[arg(long, default_value_t = 2)]
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
    /// The directory `interop/`.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    interop: PathBuf,
}

/// What `--json` writes.
#[derive(Serialize)]
struct Results<'a> {
    subject: &'static str,
    seed: u64,
    cells: &'a [Outcome],
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    let interop = cli.interop.canonicalize().context("--interop")?;
    let logs = cli.logs.clone().unwrap_or_else(|| interop.join("logs"));
    fs::create_dir_all(&logs)?;
    let logs = logs.canonicalize()?;

    let subject = Peer::named(&cli.subject).with_context(|| unknown("subject", &cli.subject))?;
    let peers: Vec<&Peer> = select(&cli.peer, PEERS, "peer", |peer| peer.name)?
        .into_iter()
        .filter(|peer| peer.name != subject.name && peer.name != "marline")
        .collect();
    let cases = select(&cli.case, CASES, "case", |case| case.name)?;
    let wanted: Vec<String> = cli.role.iter().cloned().collect();
    let roles: Vec<Role> = select(&wanted, &Role::ALL, "role", |role| role.name())?
        .into_iter()
        .copied()
        .collect();

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
    for &role in &roles {
        for &case in &cases {
            for &peer in &peers {
                cells.push(Cell {
                    subject,
                    peer,
                    case,
                    role,
                    site: &sites[case.name],
                    identity: if case.large_certificate {
                        &large
                    } else {
                        &small
                    },
                    marline: cli.marline.as_deref(),
                    interop: &interop,
                    logs: cell_logs(&logs, subject, role, peer, case),
                    seed: cli.seed,
                });
            }
        }
    }
    let outcomes = run_all(&cells, cli.jobs.max(1));

    if let Some(out) = &cli.out {
        let text = table::render(subject, &peers, &cases, &roles, &outcomes, &interop);
        if let Some(parent) = out.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(out, text).with_context(|| out.display().to_string())?;
    }
    if let Some(json) = &cli.json {
        let results = Results {
            subject: subject.name,
            seed: cli.seed,
            cells: &outcomes,
        };
        fs::write(json, serde_json::to_vec_pretty(&results)?)?;
    }
    let count = |kind: fn(&Verdict) -> bool| outcomes.iter().filter(|o| kind(&o.verdict)).count();
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    eprintln!(
        "interop: {} passed, {failed} failed, {} not supported, {} skipped",
        count(|verdict| *verdict == Verdict::Passed),
        count(|verdict| matches!(verdict, Verdict::Unsupported(_))),
        count(|verdict| matches!(verdict, Verdict::Skipped(_))),
    );
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn unknown(what: &str, name: &str) -> String {
    format!("there is no {what} {name:?}")
}

/// The entries of `all` whose names are wanted, or all of them if none are named.
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

/// Runs `cells` on `jobs` threads and reports each as it ends.
fn run_all(cells: &[Cell<'_>], jobs: usize) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::with_capacity(cells.len()));
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = cell.run();
                    if cell.beyond_browser().is_none() {
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

fn announce(outcome: &Outcome) {
    let (word, why) = match &outcome.verdict {
        Verdict::Passed => ("passed", ""),
        Verdict::Failed(why) => ("FAILED", why.as_str()),
        Verdict::Unsupported(why) => ("not supported", why.as_str()),
        Verdict::Skipped(why) => ("skipped", why.as_str()),
    };
    let colon = if why.is_empty() { "" } else { ": " };
    eprintln!(
        "{:<6} {:<9} {:<20} {word}{colon}{why} ({:.1} s)",
        outcome.role.name(),
        outcome.peer,
        outcome.case,
        outcome.duration_s
    );
}
