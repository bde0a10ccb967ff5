//! Objects fetched over emulated links, each over a new connection by a new client, with the settings that stacks come with.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde::Serialize;

use crate::args::{Args, NamedLink};
use crate::fetch::Fetch;
use crate::identity::Identity;
use crate::links::{Emulation, LIMIT, Measured, SERVER};
use crate::stacks::Stack;
use crate::statistics::{median, quantile};
use crate::trial::Report;

/// The stack to which others are compared.
const REFERENCE: &str = "marline";
/// More columns than a page has room for: links have rows then, and stacks columns.
const MAX_COLUMNS: usize = 12;
/// Fetches from which a 95th percentile is taken.
const TAIL: usize = 20;

/// The fetches of one round.
#[derive(Clone, Debug, Serialize)]
struct Round {
    round: usize,
    seconds: Vec<f64>,
    /// Whether the emulator delivered packets in time.
    valid: bool,
}

/// A column of the table: an object over a link.
#[derive(Serialize)]
struct Column {
    link: String,
    size: String,
    bytes: u64,
    /// Fetches in a round.
    count: u64,
    stacks: BTreeMap<&'static str, Vec<Round>>,
}

/// All that was measured.
#[derive(Serialize)]
struct Fetches {
    links: Vec<String>,
    rounds: usize,
    columns: Vec<Column>,
    failures: Vec<String>,
}

/// Measures all stacks over all links.
pub(crate) fn measure(
    args: &Args,
    stacks: &[&Stack],
    identity: &Identity,
) -> anyhow::Result<Measured> {
    let emulator = args.emulator()?;
    let stacks: Vec<_> = stacks.iter().filter(|stack| stack.fetches()).collect();
    let fetcher = Fetcher {
        emulator: &emulator,
        args,
        identity,
        site: Site::create(args)?,
    };
    let mut fetches = Fetches::new(args);
    for round in 0..args.rounds {
        let mut number = 0;
        for link in &args.links {
            for fetch in args
                .fetches
                .iter()
                .filter(|fetch| fetch.is_over(&link.name))
            {
                for turn in 0..stacks.len() {
                    // The order is rotated in each round.
                    let stack = stacks[(turn + round) % stacks.len()];
                    let label = format!(
                        "round {} {} {} {}",
                        round + 1,
                        link.name,
                        fetch.size,
                        stack.name
                    );
                    match fetcher.fetch(stack, link, fetch, round) {
                        Ok(one) => {
                            let late = if one.valid { "" } else { ", packets were late" };
                            let middle = median(one.seconds.clone()).unwrap_or_default();
                            eprintln!("{label}: {middle:.3} s{late}");
                            let of_stack = fetches.columns[number].stacks.entry(stack.name);
                            of_stack.or_default().push(one);
                        }
                        Err(error) => {
                            eprintln!("{label}: failed: {error:#}");
                            fetches.failures.push(format!("{label}: {error:#}"));
                        }
                    }
                }
                number += 1;
            }
        }
    }
    Ok(Measured {
        table: fetches.page(&stacks),
        json: serde_json::to_string_pretty(&fetches)? + "\n",
        succeeded: fetches.failures.is_empty(),
    })
}

/// The objects as files, for servers of files.
struct Site(PathBuf);

impl Site {
    fn create(args: &Args) -> anyhow::Result<Self> {
        let directory = std::env::temp_dir().join(format!("bench-site-{}", std::process::id()));
        fs::create_dir(&directory)?;
        let site = Self(directory);
        for fetch in &args.fetches {
            let file = site.0.join(fetch.bytes.to_string());
            fs::File::create(file)?.set_len(fetch.bytes)?;
        }
        Ok(site)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // If this fails, the files remain in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The setup of fetches over emulated links.
struct Fetcher<'a> {
    emulator: &'a Path,
    args: &'a Args,
    identity: &'a Identity,
    site: Site,
}

impl Fetcher<'_> {
    /// The fetches of a round with `stack` over `link`.
    fn fetch(
        &self,
        stack: &Stack,
        link: &NamedLink,
        fetch: &Fetch,
        round: usize,
    ) -> anyhow::Result<Round> {
        let count = fetch.count(self.args.quick);
        let output = Command::new("timeout")
            .arg(LIMIT)
            .arg(self.emulator)
            .args(["lab", "link", "--json", "--link", &link.spec])
            .args(["--seed", &(round + 1).to_string()])
            .args(["--server", &self.server(stack)?])
            .args(["--", "sh", "-c", &self.client(stack, fetch, count)?])
            .output()
            .context("timeout")?;
        // With --json, what the client prints is on standard error.
        let printed = String::from_utf8_lossy(&output.stderr);
        let last = || printed.lines().last().unwrap_or("no output").to_owned();
        let seconds = if stack.is_command() {
            elapsed(&printed)
        } else {
            let report = printed.lines().find(|line| line.starts_with("{\"bytes\""));
            serde_json::from_str::<Report>(report.with_context(last)?)?.each
        };
        ensure!(seconds.len() as u64 == count, "{}", last());
        let emulation: Emulation = serde_json::from_slice(&output.stdout).context("emulator")?;
        Ok(Round {
            round,
            seconds,
            valid: emulation.valid,
        })
    }

    /// The server's command line.
    fn server(&self, stack: &Stack) -> anyhow::Result<String> {
        let program = self.program(stack)?;
        let [cert, key] = [&self.identity.cert, &self.identity.key].map(|file| file.display());
        if stack.is_command() {
            let site = self.site.0.display();
            return Ok(format!(
                "{program} serve --listen {SERVER} --cert {cert} --key {key} {site}"
            ));
        }
        let congestion = stack
            .congestion()
            .map(|name| format!(" --congestion '{name}'"));
        // The server ends with its standard input, the pipe with the emulator.
        Ok(format!(
            "sleep {LIMIT} | {program} server --defaults --listen {SERVER} --cert {cert} --key {key}{}",
            congestion.unwrap_or_default()
        ))
    }

    /// The client's command line. The times of a command are those of its process.
    fn client(&self, stack: &Stack, fetch: &Fetch, count: u64) -> anyhow::Result<String> {
        let program = self.program(stack)?;
        let bytes = fetch.bytes;
        if stack.is_command() {
            return Ok(format!(
                "n=0; while [ $n -lt {count} ]; do from=$(date +%s%N); \
                 {program} get --insecure https://{SERVER}/{bytes} >/dev/null || exit 1; \
                 echo elapsed $(($(date +%s%N) - from)); n=$((n + 1)); done"
            ));
        }
        Ok(format!(
            "{program} client --defaults --server {SERVER} --task fetch --bytes {bytes} --count {count}"
        ))
    }

    fn program(&self, stack: &Stack) -> anyhow::Result<String> {
        if stack.is_command() {
            return Ok(self.emulator.display().to_string());
        }
        let program = stack.program(&self.args.programs).context("not built")?;
        Ok(program.display().to_string())
    }
}

/// The times in the lines `elapsed NANOSECONDS`.
fn elapsed(printed: &str) -> Vec<f64> {
    let lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("elapsed "));
    lines
        .filter_map(|nanoseconds| nanoseconds.parse::<f64>().ok())
        .map(|nanoseconds| nanoseconds * 1e-9)
        .collect()
}

impl Column {
    /// Every fetch of a stack.
    fn seconds(&self, stack: &Stack) -> Vec<f64> {
        let rounds = self.stacks.get(stack.name).into_iter().flatten();
        rounds.flat_map(|round| round.seconds.clone()).collect()
    }

    /// The median of the ratios to marline within each round.
    fn ratio(&self, stack: &Stack) -> Option<f64> {
        let own = self
            .stacks
            .get(REFERENCE)
            .filter(|_| stack.name != REFERENCE)?;
        let ratios = self.stacks.get(stack.name)?.iter().filter_map(|round| {
            let own = own.iter().find(|other| other.round == round.round)?;
            Some(median(round.seconds.clone())? / median(own.seconds.clone())?)
        });
        median(ratios.collect())
    }

    /// The median of a stack's times, and their ratio to marline's.
    fn cell(&self, stack: &Stack) -> String {
        let middle = median(self.seconds(stack)).map(time).unwrap_or_default();
        let ratio = self.ratio(stack).map(|ratio| format!(" ({ratio:.2})"));
        format!("{middle}{}", ratio.unwrap_or_default())
    }

    fn has_tail(&self, stacks: &[&&Stack]) -> bool {
        let mut counts = stacks.iter().map(|stack| self.seconds(stack).len());
        counts.any(|count| count >= TAIL)
    }
}

impl Fetches {
    fn new(args: &Args) -> Self {
        let columns = args.links.iter().flat_map(|link| {
            let over = args
                .fetches
                .iter()
                .filter(|fetch| fetch.is_over(&link.name));
            over.map(|fetch| Column {
                link: link.name.clone(),
                size: fetch.size.clone(),
                bytes: fetch.bytes,
                count: fetch.count(args.quick),
                stacks: BTreeMap::new(),
            })
        });
        let links = args.links.iter();
        Self {
            links: links
                .map(|link| format!("`{}`: `{}`", link.name, link.spec))
                .collect(),
            rounds: args.rounds,
            columns: columns.collect(),
            failures: Vec::new(),
        }
    }

    /// A row for each stack.
    fn by_stack(&self, stacks: &[&&Stack]) -> String {
        let mut text = String::from("| stack |");
        let mut rule = String::from("| --- |");
        for column in &self.columns {
            let (size, link) = (unit(&column.size), &column.link);
            text += &format!(" {size}, {link} |");
            rule += " ---: |";
            if column.has_tail(stacks) {
                text += &format!(" p95 of {size}, {link} |");
                rule += " ---: |";
            }
        }
        text += &format!("\n{rule}");
        for stack in stacks {
            text += &format!("\n| {} |", stack.name);
            for column in &self.columns {
                text += &format!(" {} |", column.cell(stack));
                if column.has_tail(stacks) {
                    let tail = quantile(column.seconds(stack), 0.95);
                    let tail = tail.map(time).unwrap_or_default();
                    text += &format!(" {tail} |");
                }
            }
        }
        text
    }

    /// A row for each link, and the median over the links of what the times are of marline's.
    fn by_link(&self, stacks: &[&&Stack]) -> String {
        let mut text = String::from("| object, link |");
        let mut rule = String::from("| --- |");
        for stack in stacks {
            text += &format!(" {} |", stack.name);
            rule += " ---: |";
        }
        text += &format!("\n{rule}");
        for column in &self.columns {
            text += &format!("\n| {}, {} |", unit(&column.size), column.link);
            for stack in stacks {
                text += &format!(" {} |", column.cell(stack));
            }
        }
        text += "\n| median of the ratios |";
        for stack in stacks {
            let ratios = self.columns.iter().filter_map(|column| column.ratio(stack));
            let middle = median(ratios.collect()).map(|ratio| format!("{ratio:.2}"));
            text += &format!(" {} |", middle.unwrap_or_default());
        }
        text
    }

    /// Seconds of all stacks over all links, and their ratio to marline's.
    fn page(&self, stacks: &[&&Stack]) -> String {
        let mut text = match self.columns.len() > MAX_COLUMNS {
            true => self.by_link(stacks),
            false => self.by_stack(stacks),
        };
        let all = || {
            self.columns
                .iter()
                .flat_map(|column| column.stacks.values())
        };
        let late = all().flatten().filter(|round| !round.valid).count();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n\nMedians over {} rounds; in parentheses, times marline's: the median of the ratios within each round. Every object \
             came over a new connection of a new client, whose handshake counts. Of {} runs of the emulator, {late} had more than \
             1 % of packets late. The links:\n",
            self.rounds,
            all().flatten().count(),
        );
        for link in &self.links {
            let _ = writeln!(text, "* {link}");
        }
        let _ = writeln!(text, "\nThe stacks:\n");
        for stack in stacks {
            let _ = writeln!(text, "* {}: {}", stack.name, stack.about);
        }
        for failure in &self.failures {
            let _ = writeln!(text, "* failed: {failure}");
        }
        text
    }
}

/// A size with a space before its unit.
fn unit(size: &str) -> String {
    let digits = size.trim_end_matches(char::is_alphabetic);
    format!("{digits} {}", &size[digits.len()..])
}

/// Seconds, or milliseconds below one.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 10.0 => format!("{seconds:.2} s"),
        seconds => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::stacks;

    fn stack(name: &str) -> &'static Stack {
        stacks::ALL.iter().find(|stack| stack.name == name).unwrap()
    }

    fn round(round: usize, seconds: &[f64]) -> Round {
        Round {
            round,
            seconds: seconds.to_vec(),
            valid: true,
        }
    }

    #[test]
    fn tables_have_medians_ratios_within_rounds_and_tails() {
        let args = Args::parse_from([
            "bench-peers",
            "--link=lossy=rate=1mbps,loss=3%",
            "--link=clean=rate=1mbps",
            "--fetch=clean:5MB",
            "--fetch=lossy:10kBx10",
            "--rounds=2",
        ]);
        let mut fetches = Fetches::new(&args);
        assert_eq!(fetches.columns.len(), 2, "each size over its own link");
        let [lossy, clean] = &mut fetches.columns[..] else {
            unreachable!()
        };
        // The machine was slower in round 1.
        let quinn = vec![round(0, &[0.2; 10]), round(1, &[0.9; 10])];
        let own = vec![round(0, &[0.1; 10]), round(1, &[0.3; 10])];
        lossy.stacks = BTreeMap::from([("quinn", quinn), ("marline", own)]);
        clean.stacks = BTreeMap::from([("marline", vec![round(0, &[2.0]), round(1, &[2.5])])]);
        let page = fetches.page(&[&stack("marline"), &stack("quinn")]);
        let lines: Vec<_> = page.lines().take(4).collect();
        assert_eq!(
            lines,
            [
                "| stack | 10 kB, lossy | p95 of 10 kB, lossy | 5 MB, clean |",
                "| --- | ---: | ---: | ---: |",
                "| marline | 200 ms | 300 ms | 2.25 s |",
                "| quinn | 550 ms (2.50) | 900 ms |  |",
            ]
        );
        assert!(page.contains("* `lossy`: `rate=1mbps,loss=3%`"), "{page}");
    }

    #[test]
    fn links_have_rows_where_there_are_many() {
        let links = (0..=MAX_COLUMNS).map(|number| format!("--link=link-{number}=rate=1mbps"));
        let arguments = ["bench-peers".to_owned(), "--fetch=1MB".to_owned()];
        let mut fetches = Fetches::new(&Args::parse_from(arguments.into_iter().chain(links)));
        for (number, column) in fetches.columns.iter_mut().enumerate() {
            let own = vec![round(0, &[1.0])];
            let quinn = vec![round(0, &[number as f64])];
            column.stacks = BTreeMap::from([("marline", own), ("quinn", quinn)]);
        }
        let page = fetches.page(&[&stack("marline"), &stack("quinn")]);
        let lines: Vec<_> = page.lines().collect();
        assert_eq!(lines[0], "| object, link | marline | quinn |");
        assert_eq!(lines[4], "| 1 MB, link-2 | 1.00 s | 2.00 s (2.00) |");
        assert_eq!(lines[3 + MAX_COLUMNS], "| median of the ratios |  | 6.00 |");
    }

    #[test]
    fn times_of_commands_are_read_from_their_lines() {
        let printed = "near end\nelapsed 1500000000\nelapsed x\nelapsed 20000000\n";
        assert_eq!(elapsed(printed), [1.5, 0.02]);
    }
}
