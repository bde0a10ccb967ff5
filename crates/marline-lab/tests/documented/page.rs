//! Templates of pages, and the pages that they make.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::cited;
use super::excerpt::{Excerpt, Wanted};
use super::published::Choices;
use super::table::{Table, verdicts};
use super::worst::Worst;

const TABLE: &str = "<!-- table\n";
const CLAIMS: &str = "<!-- claims\n";
const WORST: &str = "<!-- worst\n";
const CHOICES: &str = "<!-- choices\n";
const END_OF_COMMENT: &str = "-->\n";

/// A block of results that a page declares.
#[derive(Debug)]
pub(crate) enum Block {
    Table(Table),
    Claims(Claims),
    Worst(Worst),
    Choices(Choices),
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
        };
        let wanted = wanted.entry(results.clone()).or_default();
        match self {
            Self::Table(table) => table.add_to(wanted),
            Self::Worst(worst) => worst.add_to(wanted),
            Self::Claims(_) | Self::Choices(_) => {}
        }
    }

    fn text(&self, excerpts: &BTreeMap<String, Excerpt>) -> String {
        match self {
            Self::Table(table) => table.text(&excerpts[&table.results]),
            Self::Claims(claims) => verdicts(&excerpts[&claims.results]),
            Self::Worst(worst) => worst.text(&excerpts[&worst.results]),
            Self::Choices(choices) => choices.text(excerpts),
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
            let place = || format!("the template of {} after {at}", path.display());
            let length = rest[written..].find(END_OF_COMMENT);
            let end = written + length.unwrap_or_else(|| panic!("{}: no -->", place()));
            let toml = &rest[written..end];
            let block = match mark {
                TABLE => toml::from_str(toml).map(Block::Table),
                WORST => toml::from_str(toml).map(Block::Worst),
                CHOICES => {
                    toml::from_str(toml).map(|of: ChoicesOf| Block::Choices(Choices::read(&of.of)))
                }
                _ => toml::from_str(toml).map(Block::Claims),
            };
            let block = block.unwrap_or_else(|error| panic!("{}: {error}", place()));
            pieces.push(Piece::Text(rest[..at].to_owned()));
            pieces.push(Piece::Shown(block));
            rest = &rest[end + END_OF_COMMENT.len()..];
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Self { path, pieces }
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
            Piece::Text(text) => text.clone(),
            Piece::Shown(block) => block.text(excerpts),
        });
        let text: String = pieces.collect();
        cited::filled(&text).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

/// The first mark of a table, of verdicts, of the worst points or of choices.
fn first(text: &str) -> Option<(usize, &'static str)> {
    let found = [TABLE, CLAIMS, WORST, CHOICES].map(|mark| text.find(mark).map(|at| (at, mark)));
    found.into_iter().flatten().min()
}
