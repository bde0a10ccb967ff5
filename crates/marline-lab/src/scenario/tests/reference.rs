//! `docs/scenario-keys.md` has all keys of scenarios, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use marline::TransportConfig;
use marline::settings::keys;

use super::super::keys::{EXPERIMENT_KEYS, FLAT_KEYS};
use super::super::reader::known;
use super::*;

/// A section of the page, and keys that only its table has.
struct Section {
    heading: &'static str,
    has: &'static [&'static str],
    /// A key that another table with the keys of `has` has, but this one has not.
    lacks: &'static str,
}

const fn section(
    heading: &'static str,
    has: &'static [&'static str],
    lacks: &'static str,
) -> Section {
    Section {
        heading,
        has,
        lacks,
    }
}

/// Tables with free names (`[links.NAME]`, `stress`) are not read key by key.
const SECTIONS: [Section; 19] = [
    section("`wsp`: points that fill a space", &["factors"], ""),
    section("`[[comparison]]`", &["a", "b"], "text"),
    section("`[[must]]`", &["text"], ""),
    section("`[[published]]`", &["scale"], ""),
    section("`[[correlation]]`", &["x"], ""),
    section("A look-up", &["file", "value"], "scale"),
    section("`initial_window` as a table", &["fallback"], ""),
    section("`[http]`", &["own_sockets"], ""),
    section("`[workload]`", &["objects", "call"], ""),
    section("A member of `streams`", &["urgency"], ""),
    section("`devices`", &["apart"], ""),
    section("`measure`", &["until"], ""),
    section("A member of `visits`", &["early"], ""),
    section("`video`", &["ladder"], ""),
    section("`call`", &["deadline"], ""),
    section("`[[background]]`", &["kind"], ""),
    section("`[[change]]`", &["before_visit"], ""),
    section("The experiment", &["title", "time_limit"], ""),
    section("What a run does", &["title", "time_limit"], ""),
];

/// Scenarios that together have every table.
const SCENARIOS: [&str; 12] = [
    "workload.objects = '1MB'\n[[change]]\nat = '1s'\nlink.rate = '1mbps'\n[http]\nversion = '3'\n\
     [sweep]\nwsp = { n = 3, factors = { 'link.rtt' = ['10ms', '20ms'] } }\n\
     [[published]]\nfile = 'none.csv'\nvalue = 'x'\n",
    "workload.objects = '1MB'\n[variant.a]\n[variant.b]\n[[comparison]]\na = 'a'\nb = 'b'\n\
     published = { file = 'none.csv', value = 'x' }\n",
    "workload.objects = '1MB'\n[variant.a]\n[variant.b]\n[[comparison]]\na = 'a'\nb = 'b'\n[[correlation]]\nx = 'loss_ratio'\n\
     [[must]]\ntext = 'x'\na = 'a'\nb = 'b'\nkeeps_part_of_gain = 0.5\ngain_of = 'a'\n",
    "initial_window = { fallback = 10, history = 'default', careful = 'default' }\nworkload.files = 'x'\n",
    "workload.streams = [{ id = 1, size = '1kB' }]\n[[background]]\nkind = 'flows'\n",
    "workload.page = 'today/small'\n[[background]]\nkind = 'tcp'\n",
    "workload.devices = { page = 'today/small', count = 2 }\n[[background]]\nkind = 'on-off'\nrate = '1mbps'\non = '1s'\n",
    "workload.measure = { until = '2s' }\n[[background]]\nkind = 'poisson'\nrate = '1mbps'\n",
    "workload.visits = [{ size = '1kB' }]\n",
    "workload.transfer = '1MB'\n",
    "workload.video = { ladder = ['1mbps'], length = '8s' }\n",
    "workload.call = { rate = '1mbps', length = '8s' }\n",
];

/// The keys of each section of the page: those in the first cells of its table.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario-keys.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut sections = BTreeMap::<_, BTreeSet<_>>::new();
    for part in page.split("\n## ").skip(1) {
        let (heading, rest) = part.split_once('\n').unwrap();
        let rows = rest.lines().filter_map(|line| line.strip_prefix("| `"));
        let first = rows.filter_map(|row| row.split(" | ").next());
        let keys = first.flat_map(|cell| cell.split('`').step_by(2));
        let keys = keys.filter(|key| !key.is_empty()).map(str::to_owned);
        sections.entry(heading.to_owned()).or_default().extend(keys);
    }
    sections
}

#[test]
fn the_reference_has_the_keys_that_the_reader_knows() {
    known::take();
    for scenario in SCENARIOS {
        // Errors come after all keys are read: files do not exist.
        let _ = read_with(
            &format!("title = 'x'\nlink = 'rate=1mbps,rtt=10ms'\n{scenario}"),
            &[],
        );
    }
    let tables = known::take();
    let of_ends: BTreeSet<_> = keys(TransportConfig::SETTINGS)
        .chain(FLAT_KEYS.map(|(key, _)| key))
        .filter(|key| *key != "cc")
        .collect();
    let mut documented = documented();
    let mut of_experiment = documented["The experiment"].clone();
    // Variants may have backends of their own.
    assert!(of_experiment.remove("backend"));
    assert_eq!(of_experiment, EXPERIMENT_KEYS.map(str::to_owned).into());
    let top: BTreeSet<_> = ["The experiment", "What a run does"]
        .iter()
        .flat_map(|heading| documented[*heading].clone())
        .collect();
    for section in &SECTIONS {
        let has = |table: &&Vec<String>, key: &str| table.iter().any(|known| known == key);
        let read = tables.iter().filter(|table| {
            section.has.iter().all(|key| has(table, key)) && !has(table, section.lacks)
        });
        let mut read: BTreeSet<_> = read.flatten().cloned().collect();
        assert!(!read.is_empty(), "{} was not read", section.heading);
        match section.heading {
            "The experiment" | "What a run does" => {
                read.retain(|key| !of_ends.contains(key.as_str()));
                documented.insert(section.heading.to_owned(), top.clone());
            }
            "`[[background]]`" => {
                read.retain(|key| key != "profile" && !of_ends.contains(key.as_str()));
            }
            "`initial_window` as a table" => {
                read.retain(|key| ["fallback", "history", "careful"].contains(&key.as_str()));
            }
            _ => {}
        }
        assert_eq!(documented[section.heading], read, "{}", section.heading);
    }
}
