//! Figures that stand typed in the sentences of a template.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::page::{Block, MARKS, Page};
use super::{pages, root};

/// Units after a figure, longer ones first, as pages and experiments write them, and the form in which they are compared.
const UNITS: [(&str, &str); 35] = [
    ("percentage points", "points"),
    ("bandwidth-delay products", "bdp"),
    ("bandwidth-delay product", "bdp"),
    ("milliseconds", "ms"),
    ("microseconds", "us"),
    ("minutes", "min"),
    ("seconds", "s"),
    ("percent", "%"),
    ("Mbit/s", "Mb/s"),
    ("kbit/s", "kb/s"),
    ("points", "points"),
    ("hours", "h"),
    ("Gb/s", "Gb/s"),
    ("Mb/s", "Mb/s"),
    ("kb/s", "kb/s"),
    ("mbps", "Mb/s"),
    ("kbps", "kb/s"),
    ("gbps", "Gb/s"),
    ("times", "times"),
    ("bytes", "B"),
    ("KiB", "KiB"),
    ("MiB", "MiB"),
    ("BDP", "bdp"),
    ("bdp", "bdp"),
    ("min", "min"),
    ("kB", "kB"),
    ("_kb", "kB"),
    ("_mb", "MB"),
    ("MB", "MB"),
    ("GB", "GB"),
    ("dB", "dB"),
    ("µs", "us"),
    ("us", "us"),
    ("ms", "ms"),
    ("s", "s"),
];

/// A number with a unit, or a count of a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Figure {
    number: String,
    unit: &'static str,
}

/// A figure, and where it stands.
struct Found {
    figure: Figure,
    at: usize,
    end: usize,
}

/// The figures of a text. Percentages of confidence and percentiles are none.
fn figures(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..]
        .find(|c: char| c.is_ascii_digit())
        .map(|i| at + i)
    {
        let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
        let length = text[begin..].find(|c| !is_number(c));
        let number = text[begin..length.map_or(text.len(), |length| begin + length)]
            .trim_end_matches(['.', ',']);
        at = begin + number.len();
        let mut before = text[..begin].chars().rev();
        let is_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
        match before.next() {
            Some('-') if before.next().is_some_and(is_of_a_name) => continue,
            Some(c) if is_of_a_name(c) => continue,
            _ => {}
        }
        let rest = &text[at..];
        let after = rest.trim_start_matches([' ', '\u{a0}', '\n']);
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_of = after
            .strip_prefix("of ")
            .is_some_and(|of| of.starts_with(|c: char| c.is_ascii_digit()));
        let unit = if after.starts_with('%') {
            Some(("%", "%"))
        } else if is_of {
            Some(("of", "of"))
        } else {
            let fits = |(name, _): &&(&'static str, &'static str)| {
                after.strip_prefix(name).is_some_and(ends)
            };
            UNITS.iter().find(fits).copied()
        };
        let Some((name, unit)) = unit else { continue };
        let end = text.len() - after.len() + name.len();
        let of = text[end..].trim_start_matches(['-', ' ', '\n']);
        let is_confidence = (unit == "%" && number == "95")
            && ["interval", "confidence", "intervals"]
                .iter()
                .any(|word| of.starts_with(word));
        if !is_confidence {
            let number = number.replace(',', "");
            let figure = Figure { number, unit };
            found.push(Found {
                figure,
                at: begin,
                end,
            });
        }
    }
    found
}

/// Whether the sentence is about packets that a link loses, which alone makes a percentage a setting.
fn is_of_losses(text: &str, found: &Found) -> bool {
    let after = text[found.end..].trim_start_matches([' ', '\n']);
    let before = text[..found.at].trim_end_matches([' ', '\n']);
    let follows = ["lost", "loss", "of losses", "of the packets", "of packets"];
    follows.iter().any(|word| after.starts_with(word))
        || ["loses", "lose", "losses of"]
            .iter()
            .any(|word| before.ends_with(word))
}

/// The figures that people may type on a page, as phrases in which they stand.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    /// Of experiments, links and programs.
    #[serde(default)]
    settings: Vec<String>,
    /// Of papers and standards.
    #[serde(default)]
    published: Vec<String>,
    /// Bounds that claims name.
    #[serde(default)]
    bounds: Vec<String>,
}

impl Typed {
    fn phrases(&self) -> impl Iterator<Item = &String> {
        self.settings
            .iter()
            .chain(&self.published)
            .chain(&self.bounds)
    }
}

/// The figures in the files of the experiments that a page shows.
fn settings(page: &Page) -> BTreeSet<Figure> {
    let shown: BTreeSet<_> = page.blocks().filter_map(Block::experiment).collect();
    let files = shown.into_iter().map(|id| {
        let path = root().join("experiments").join(format!("{id}.toml"));
        std::fs::read_to_string(path).unwrap()
    });
    files
        .flat_map(|text| figures(&text))
        .map(|found| found.figure)
        .collect()
}

/// The sentences and typed tables of a page: without code, headings, cited cells, places of links, and the tables after
/// a mark of [`MARKS`].
fn sentences(page: &Page) -> String {
    let mut text = String::new();
    let mut is_code = false;
    let mut is_marked = false;
    for line in page.typed().lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_row = line.starts_with('|');
        if MARKS.iter().any(|mark| line.starts_with(mark)) {
            is_marked = true;
        } else if !is_row && !line.is_empty() {
            is_marked = false;
        }
        let is_left_out = is_code || is_fence || line.starts_with('#') || (is_row && is_marked);
        text += if is_left_out { "" } else { line };
        text.push('\n');
    }
    for (open, close, place) in [
        ("<!--", "-->", ""),
        ("{{", "}}", "…"),
        ("`", "`", "`"),
        ("](", ")", "]"),
    ] {
        let mut made = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(open) {
            let Some((_, after)) = after.split_once(close) else {
                break;
            };
            made.push_str(before);
            made.push_str(place);
            rest = after;
        }
        text = made + rest;
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn figures_in_sentences_come_from_results() {
    let path = root().join("docs/templates/typed.toml");
    let typed = std::fs::read_to_string(path).unwrap();
    let typed: BTreeMap<String, Typed> = toml::from_str(&typed).unwrap();
    let mut wrong = Vec::new();
    for page in pages() {
        let name = page
            .path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let mut text = sentences(&page);
        for phrase in typed.get(&name).into_iter().flat_map(Typed::phrases) {
            if figures(phrase).is_empty() || !text.contains(phrase) {
                wrong.push(format!(
                    "{name}: no figure of a sentence is allowed by \"{phrase}\""
                ));
            }
            text = text.replace(phrase, " ");
        }
        let settings = settings(&page);
        for found in figures(&text) {
            let is_setting = settings.contains(&found.figure)
                && (found.figure.unit != "%" || is_of_losses(&text, &found));
            if !is_setting {
                let begin = text[..found.at]
                    .char_indices()
                    .rev()
                    .nth(40)
                    .map_or(0, |(i, _)| i);
                wrong.push(format!("{name}: \"{}\"", &text[begin..found.end]));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "write `{{{{value ...}}}}`, leave it out, or, if no run measured it, name it in docs/templates/typed.toml:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn figures_are_numbers_with_units() {
    let found = |text| {
        let all = figures(text).into_iter();
        all.map(|found| format!("{} {}", found.figure.number, found.figure.unit))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(
        found("It takes 2.4 s, 3 % less, at 20mbps (section 4.3)."),
        "2.4 s, 3 %, 20 Mb/s"
    );
    assert_eq!(found("at 3 of 12 links"), "3 of");
    assert_eq!(
        found("3.5 times, with its 95 % interval and 1,200 bytes"),
        "3.5 times, 1200 B"
    );
    assert_eq!(found("RFC 9002 section 7.2, 15 pages, h3s, 5 seeds"), "");
}
