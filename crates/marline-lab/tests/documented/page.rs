//! Templates of pages, and the pages that they make.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::cited;
use super::excerpt::{Excerpt, Wanted};
use super::published::Choices;
use super::runs;
use super::table::{Single, Table, verdicts};
use super::worst::Worst;

const TABLE: &str = "<!-- table\n";
const CLAIMS: &str = "<!-- claims\n";
const WORST: &str = "<!-- worst\n";
const CHOICES: &str = "<!-- choices\n";
const END_OF_COMMENT: &str = "-->\n";
const VALUE: &str = "{{value ";
const END_OF_VALUE: &str = " }}";

/// Marks before a typed table: the program that printed it, or that it names settings. Pages do not have them.
pub(crate) const MARKS: [&str; 2] = ["<!-- printed by: ", "<!-- settings -->"];

/// A block of results that a page declares.
#[derive(Debug)]
pub(crate) enum Block {
    Table(Table),
    Claims(Claims),
    Worst(Worst),
    Choices(Choices),
    Value(Single),
}

/// The keys of a value, as an inline table.
#[derive(Debug, Deserialize)]
struct Keys {
    value: Single,
}

/// The name of the page whose choices follow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChoicesOf {
    of: String,
}

/// The verdicts on all claims of an experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    results: String,
}

impl Block {
    /// Adds what it shows of each experiment.
    pub(crate) fn add_to(&self, wanted: &mut BTreeMap<String, Wanted>) {
        let results = match self {
            Self::Table(table) => &table.results,
            Self::Worst(worst) => &worst.results,
            Self::Claims(claims) => &claims.results,
            Self::Choices(choices) => return choices.add_to(wanted),
            Self::Value(value) => &value.results,
        };
        let wanted = wanted.entry(results.clone()).or_default();
        match self {
            Self::Table(table) => table.add_to(wanted),
            Self::Worst(worst) => worst.add_to(wanted),
            Self::Value(value) => value.add_to(wanted),
            Self::Claims(_) | Self::Choices(_) => {}
        }
    }

    fn text(&self, excerpts: &BTreeMap<String, Excerpt>) -> String {
        match self {
            Self::Table(table) => table.text(&excerpts[&table.results]),
            Self::Claims(claims) => verdicts(&excerpts[&claims.results]),
            Self::Worst(worst) => worst.text(&excerpts[&worst.results]),
            Self::Choices(choices) => choices.text(excerpts),
            Self::Value(value) => value.text(&excerpts[&value.results]),
        }
    }

    /// The experiment whose results it shows.
    pub(crate) fn experiment(&self) -> Option<&str> {
        match self {
            Self::Table(table) => Some(&table.results),
            Self::Worst(worst) => Some(&worst.results),
            Self::Claims(claims) => Some(&claims.results),
            Self::Value(value) => Some(&value.results),
            Self::Choices(_) => None,
        }
    }
}

/// A piece of a page.
#[derive(Debug)]
enum Piece {
    Text(String),
    Shown(Block),
}

/// A page, and the template that it is made of.
#[derive(Debug)]
pub(crate) struct Page {
    path: PathBuf,
    pieces: Vec<Piece>,
}

impl Page {
    /// The page at `path` by the text of its template.
    pub(crate) fn of(path: PathBuf, template: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((at, mark)) = first(rest) {
            let written = at + mark.len();
            let line = template[..template.len() - rest.len() + at].lines().count();
            let place = || format!("the template of {}, line {line}", path.display());
            let end_mark = if mark == VALUE {
                END_OF_VALUE
            } else {
                END_OF_COMMENT
            };
            let length = rest[written..].find(end_mark);
            let end = written + length.unwrap_or_else(|| panic!("{}: no{end_mark}", place()));
            let toml = &rest[written..end];
            let block = match mark {
                TABLE => toml::from_str(toml).map(Block::Table),
                WORST => toml::from_str(toml).map(Block::Worst),
                CHOICES => {
                    toml::from_str(toml).map(|of: ChoicesOf| Block::Choices(Choices::read(&of.of)))
                }
                VALUE => toml::from_str(&format!("value = {{ {} }}", toml.replace('\n', " ")))
                    .map(|keys: Keys| Block::Value(keys.value)),
                _ => toml::from_str(toml).map(Block::Claims),
            };
            let block = block.unwrap_or_else(|error| panic!("{}: {error}", place()));
            pieces.push(Piece::Text(rest[..at].to_owned()));
            pieces.push(Piece::Shown(block));
            rest = &rest[end + end_mark.len()..];
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Self { path, pieces }
    }

    /// The text that is typed, with a sign in the place of each block.
    pub(crate) fn typed(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Shown(_) => "…",
        });
        pieces.collect()
    }

    /// Whether it is about results alone, and ends with the runs that it shows.
    fn is_of_results(&self) -> bool {
        self.path.to_string_lossy().ends_with("-results.md")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The page as it is kept.
    pub(crate) fn kept(&self) -> String {
        std::fs::read_to_string(&self.path)
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Shown(block) => Some(block),
            Piece::Text(_) => None,
        })
    }

    /// The page that its template makes of the results.
    pub(crate) fn made(&self, excerpts: &BTreeMap<String, Excerpt>) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => without_marks(text),
            Piece::Shown(block) => block.text(excerpts),
        });
        let mut text: String = pieces.collect();
        let mut shown = BTreeMap::new();
        self.blocks().for_each(|block| block.add_to(&mut shown));
        // Of a choice whose effect is not yet run, nothing is kept.
        let kept = shown
            .keys()
            .filter_map(|id| Some((id.as_str(), excerpts.get(id)?)));
        let runs: BTreeMap<_, _> = kept.collect();
        if self.is_of_results() && !runs.is_empty() {
            text += "\n## Runs\n\n";
            text += &runs::table(&runs);
        }
        cited::filled(&text).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

fn without_marks(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    let others = lines.filter(|line| !MARKS.iter().any(|mark| line.starts_with(mark)));
    others.collect()
}

/// The first mark of a table, of verdicts, of the worst points, of choices or of a value.
fn first(text: &str) -> Option<(usize, &'static str)> {
    let found =
        [TABLE, CLAIMS, WORST, CHOICES, VALUE].map(|mark| text.find(mark).map(|at| (at, mark)));
    found.into_iter().flatten().min()
}
