//! `marline reference`: every policy and every setting, from the tables that all parsers use.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use marline::coordination::history::{HistoryConfig, HistoryPolicy, StoreLimits};
use marline::settings::{Named, Registry, Row, rows};
use marline::{Profile, TransportConfig, ack, congestion, recovery, scheduling};

use crate::config_file::{ConfigFile, HistoryKeys};
use crate::failure::Failure;

/// List every policy, or every setting
///
/// Settings are keys of a configuration file, of --set and of experiments; policies are values of some of
/// them, with parameters in parentheses: hybrid(factor=0.25). Both pages are Markdown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    marline reference settings\n  \
    marline reference policies")]
pub(crate) struct Arguments {
    /// The page
    page: Page,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Page {
    /// Every policy and its parameters
    Policies,
    /// Every setting, with its allowed values and its default
    Settings,
}

#[expect(clippy::unnecessary_wraps, reason = "every verb returns alike")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    out!(
        "{}",
        match arguments.page {
            Page::Policies => policies(),
            Page::Settings => settings(),
        }
    );
    Ok(())
}

/// The note about the origin of a page.
const GENERATED: &str = "<!-- Generated from the code. After a change there: REGENERATE=1 cargo test -p marline-cli --all-features --lib reference -->";

/// The page of policies.
fn policies() -> String {
    let mut page = format!(
        "{GENERATED}\n\n# Policies by name\n\n\
         A policy is written as its name, with parameters in parentheses where they differ from the defaults: \
         `hybrid(factor=0.25, min_rise=8ms)`. That is the same on a command line, in the server's TOML and in \
         experiments. [Writing a policy](../policies.md) says what they are for.\n"
    );
    let mut names = String::new();
    for profile in Profile::ALL {
        line(&mut names, &[&code(profile.name()), profile.about()]);
    }
    section(
        &mut page,
        "`profile`: named sets of policies",
        &["name", "description"],
        &names,
    );
    policies_of(&mut page, "cc", &congestion::CONTROLLERS);
    policies_of(&mut page, "slow_start_exit", &congestion::slow_start::EXITS);
    policies_of(&mut page, "initial_window", &congestion::INITIAL_WINDOWS);
    policies_of(&mut page, "loss_detection", &recovery::loss::DETECTORS);
    policies_of(&mut page, "ack", &ack::POLICIES);
    policies_of(
        &mut page,
        "stream_scheduler",
        &scheduling::stream::SCHEDULERS,
    );
    policies_of(
        &mut page,
        "multipath.scheduler",
        &scheduling::path::SCHEDULERS,
    );
    policies_of(&mut page, "pipes", &marline_http::pipes::POLICIES);
    let mut names = String::new();
    for word in HistoryPolicy::WORDS {
        line(&mut names, &[&code(word.name), word.about]);
    }
    section(
        &mut page,
        "`history.policy`: how connections use earlier ones",
        &["name", "description"],
        &names,
    );
    page
}

/// The policies of one kind, followed by the parameters of each.
fn policies_of<F>(page: &mut String, key: &str, registry: &Registry<F>) {
    let (mut names, mut parameters) = (String::new(), String::new());
    for entry in registry.entries() {
        line(&mut names, &[&code(entry.name()), entry.about()]);
        for row in entry.parameters() {
            let of = code(&format!("{}.{}", entry.name(), row.key));
            line(
                &mut parameters,
                &[&of, &code(&row.default), &allowed(&row), row.about],
            );
        }
    }
    let title = format!("{}: {}", code(key), registry.what());
    section(page, &title, &["name", "description"], &names);
    if !parameters.is_empty() {
        let head = ["parameter", "default", "values", "description"];
        table(page, &head, &parameters);
    }
}

/// The page of settings.
fn settings() -> String {
    let mut page = format!(
        "{GENERATED}\n\n# Settings\n\n\
         Every key with its default and its values. The same keys are read from the server's TOML, \
         from `--set KEY=VALUE` of `marline serve` and `marline get`, and from experiments, for both ends or in \
         `[client]` and `[server]`; results list them under `settings`. A `-` \
         may stand for each `_` of a key. Sizes are \
         a number of bytes, or text with a unit, as `\"64kB\"`; times are text, as `\"30s\"`. [Policies](policies.md) \
         have a page of their own.\n"
    );
    let transport = rows(TransportConfig::SETTINGS, "", &TransportConfig::default());
    nested(&mut page, "Connections", &transport);
    let history = rows(HistoryConfig::SETTINGS, "", &HistoryConfig::default());
    keys(
        &mut page,
        "Use of earlier connections: `[history]` of a server, `initial_window` of an experiment",
        &history,
    );
    let limits = rows(StoreLimits::SETTINGS, "", &StoreLimits::default());
    keys(
        &mut page,
        "Size and lifetime of the history: `[history]` of a server",
        &limits,
    );
    let place = rows(HistoryKeys::SETTINGS, "", &HistoryKeys::default());
    keys(
        &mut page,
        "Policy and location of the history: `[history]` of a server",
        &place,
    );
    nested(
        &mut page,
        "Files, addresses and certificates of a server: its TOML, beside the keys above",
        &ConfigFile::rows(),
    );
    keys(
        &mut page,
        "`endpoint`: settings that all connections of a server share: its TOML",
        &ConfigFile::endpoint_rows(),
    );
    page
}

/// The keys at the top of `all`, and then those of each table in it. What tables have from others is there once.
fn nested(page: &mut String, title: &str, all: &[Row]) {
    let inside = |table: &str| -> Vec<Row> {
        let rows = all.iter();
        let rows = rows.filter(|row| row.key.rsplit_once('.').is_some_and(|(of, _)| of == table));
        rows.cloned().collect()
    };
    let is_same = |a: &Row, b: &Row| {
        last(&a.key) == last(&b.key) && a.about == b.about && a.allowed == b.allowed
    };
    let top: Vec<_> = all
        .iter()
        .filter(|row| !row.key.contains('.'))
        .cloned()
        .collect();
    keys(page, title, &top);
    for outer in all {
        let of_outer = inside(&outer.key);
        let is_elsewhere = all.iter().any(|other| {
            let of_other = inside(&other.key);
            other.key.len() < outer.key.len()
                && last(&other.key) == last(&outer.key)
                && of_other.len() == of_outer.len()
                && of_other.iter().zip(&of_outer).all(|(a, b)| is_same(a, b))
        });
        if of_outer.is_empty() || is_elsewhere {
            continue;
        }
        let around = outer.key.rsplit_once('.').map_or("", |(around, _)| around);
        let of_around = inside(around);
        let (shared, own): (Vec<_>, Vec<_>) = of_outer
            .into_iter()
            .partition(|row| of_around.iter().any(|other| is_same(other, row)));
        let title = format!("{}: {}", code(&outer.key), outer.about);
        keys(page, &title, &own);
        if let [first, .., end] = &shared[..] {
            let (first, end) = (code(last(&first.key)), code(last(&end.key)));
            let around = code(around);
            // Writing to a string does not fail.
            let _ = write!(
                page,
                "\nAs well as the keys of {around} from {first} to {end}.\n"
            );
        }
    }
}

/// The last part of a dotted key.
fn last(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, last)| last)
}

fn keys(page: &mut String, title: &str, rows: &[Row]) {
    let mut lines = String::new();
    for row in rows {
        let default = match row.default.is_empty() {
            true => String::new(),
            false => code(&row.default),
        };
        line(
            &mut lines,
            &[&code(&row.key), &default, &allowed(row), row.about],
        );
    }
    section(
        page,
        title,
        &["key", "default", "values", "description"],
        &lines,
    );
}

/// The allowed values of a setting, with the meaning of each word, unless they are policies.
fn allowed(row: &Row) -> String {
    if row.words.is_empty() {
        return row.allowed.clone();
    }
    if !row.allowed.starts_with("one of") {
        let names: Vec<_> = row.words.iter().map(|word| code(word.name)).collect();
        return format!("{}: {}", row.allowed, names.join(", "));
    }
    let words: Vec<_> = row
        .words
        .iter()
        .map(|word| format!("{}: {}", code(word.name), word.about))
        .collect();
    words.join("; ")
}

fn section(page: &mut String, title: &str, head: &[&str], lines: &str) {
    let _ = write!(page, "\n## {title}\n");
    table(page, head, lines);
}

fn table(page: &mut String, head: &[&str], lines: &str) {
    page.push('\n');
    line(page, head);
    line(page, &vec!["---"; head.len()]);
    page.push_str(lines);
}

fn line(page: &mut String, cells: &[&str]) {
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[cfg(test)]
mod tests;
