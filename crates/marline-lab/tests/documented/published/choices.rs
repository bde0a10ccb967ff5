//! The choices of a page: what a paper leaves open, what the experiments have, and what other choices change.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::excerpt::{Excerpt, Wanted};
use super::super::root;
use super::super::table::line;
use super::index::Entry;
use super::ours::ours;
use super::page::show;

/// The choices of a page, from `experiments/published/index/choices`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choices {
    #[serde(rename = "choice")]
    choices: Vec<Choice>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// The choice that the paper leaves open.
    parameter: String,
    /// The choice of the experiments.
    chosen: String,
    /// The effect that was measured of this choice and of others; nothing, if they were not compared.
    #[serde(default)]
    effect: Option<Effect>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Effect {
    quantity: String,
    /// By the choice.
    with: Vec<Entry>,
}

impl Choices {
    /// Reads those of the page `name`.
    pub(crate) fn read(name: &str) -> Self {
        let directory = root().join("experiments/published/index/choices");
        let path = directory.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let effects = self.choices.iter().flat_map(|choice| &choice.effect);
        effects.flat_map(|effect| &effect.with)
    }

    /// Adds what is needed from the results.
    pub(crate) fn add_to(&self, wanted: &mut BTreeMap<String, Wanted>) {
        for entry in self.entries() {
            let id = entry.experiment().expect("an effect is of results");
            entry.add_to(wanted.entry(id.to_owned()).or_default());
        }
    }

    /// The table in Markdown.
    pub(crate) fn text(&self, excerpts: &BTreeMap<String, Excerpt>) -> String {
        let head = ["left open", "here", "effect of other choices", "run"];
        let mut text = line(head.into_iter());
        text += &line(["---"; 4].into_iter());
        for choice in &self.choices {
            let (effect, run) = match &choice.effect {
                None => ("not measured".to_owned(), String::new()),
                Some(effect) => (effect.text(excerpts), effect.runs()),
            };
            let cells = [choice.parameter.as_str(), &choice.chosen, &effect, &run];
            text += &line(cells.into_iter());
        }
        text
    }
}

impl Effect {
    fn text(&self, excerpts: &BTreeMap<String, Excerpt>) -> String {
        let each = self.with.iter().map(|entry| {
            let excerpt = entry.experiment().and_then(|id| excerpts.get(id));
            let found = ours(entry, excerpt).map(|found| show(&found.measured, &entry.unit));
            let found = found.unwrap_or_else(|| "not yet run".to_owned());
            format!("{} {found}", entry.quantity)
        });
        format!("{}: {}", self.quantity, each.collect::<Vec<_>>().join("; "))
    }

    fn runs(&self) -> String {
        let mut ids: Vec<_> = self.with.iter().filter_map(Entry::experiment).collect();
        ids.dedup();
        let ids = ids.into_iter().map(|id| format!("`{id}`"));
        ids.collect::<Vec<_>>().join(", ")
    }
}
