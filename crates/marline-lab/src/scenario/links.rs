//! Links in a document: descriptions split into settings, so that single ones can be replaced.

use marline_link::spec::{LinkSpec, SpecError, words};

use super::document::{Item, Node, Table};
use super::error::{Place, Problem};

/// Splits a link into its settings: `lte-a, loss=1%` becomes a table with `preset` and `loss`. A table is
/// flattened: `down = { loss = "1%" }` becomes `down.loss`.
pub(super) fn take_apart(node: Node) -> Result<Node, Problem> {
    let mut pieces = Table::default();
    let place = node.place.clone();
    match node.item {
        Item::Text(text) => take_text(&text, &place, &mut pieces)?,
        Item::Table(table) => flatten("", table, &mut pieces)?,
        _ => {
            return Err(node.problem(format_args!(
                "{} is not a link; write one as \"rate=12mbps, rtt=80ms\" or with a preset's name",
                node.kind()
            )));
        }
    }
    Ok(Node {
        place,
        item: Item::Table(pieces),
    })
}

fn take_text(text: &str, place: &Place, pieces: &mut Table) -> Result<(), Problem> {
    let words = words(text).into_iter().map(str::trim).enumerate();
    for (index, piece) in words.filter(|(_, piece)| !piece.is_empty()) {
        let (key, value) = match piece.split_once('=') {
            Some((key, value)) => (key.trim(), value.trim()),
            None if index == 0 => ("preset", piece),
            None => (piece, ""),
        };
        if pieces.get(key).is_some() {
            return Err(Problem::new(
                place,
                format_args!("{key} is there twice; keep one"),
            ));
        }
        let node = Node {
            place: place.clone(),
            item: Item::Text(value.to_owned()),
        };
        pieces.set(key, node);
    }
    Ok(())
}

fn flatten(prefix: &str, table: Table, pieces: &mut Table) -> Result<(), Problem> {
    for (key, node) in table.0 {
        let place = node.place.clone();
        match node.item {
            Item::Table(inner) => flatten(&format!("{prefix}{key}."), inner, pieces)?,
            Item::Text(text) if prefix.is_empty() && key == "spec" => {
                take_text(&text, &place, pieces)?;
            }
            item => pieces.set(&format!("{prefix}{key}"), Node { place, item }),
        }
    }
    Ok(())
}

/// Sets one setting of a split link. A setting for both directions replaces those for one; `rtt` and `delay`
/// replace each other.
pub(super) fn set(pieces: &mut Table, key: &str, node: Node) {
    pieces.0.retain(|(old, _)| {
        let one_way = old.strip_prefix("up.").or(old.strip_prefix("down."));
        let replaced = match (key, one_way.unwrap_or(old)) {
            ("rtt", "delay") | ("delay", "rtt") => true,
            (key, setting) => one_way.is_some() && key == setting,
        };
        !replaced
    });
    if key == "preset" {
        pieces.remove(key);
        pieces.0.insert(0, (key.to_owned(), node));
    } else {
        pieces.set(key, node);
    }
}

/// Keys of a named link that are not part of its description.
const OUTSIDE: [&str; 2] = ["between", "channel"];

/// Refuses keys in `link` that only a named link has: they would be ignored.
pub(super) fn refuse_outside(link: &Node) -> Result<(), Problem> {
    let Item::Table(pieces) = &link.item else {
        return Ok(());
    };
    let outside = OUTSIDE.iter().find_map(|key| pieces.get(key));
    outside.map_or(Ok(()), |node| {
        Err(node.problem("only a link as [links.NAME] says whom it joins; leave this out"))
    })
}

/// Joins the settings of a link to a description, and checks it. `between` is not part of it.
pub(super) fn put_together(link: &Node) -> Result<String, Problem> {
    let description = Description::of_link(link)?;
    if description.pairs.is_empty() {
        return Err(link.problem("the link is empty; write one as \"rate=12mbps, rtt=80ms\""));
    }
    let pairs = description.pairs.iter();
    let checked = LinkSpec::from_pairs(pairs.map(|(key, value)| (key.as_str(), value.as_str())));
    checked.map_err(|error| description.problem(&error, "link"))?;
    Ok(description.text())
}

/// A description in the form of [`LinkSpec`], and the places of its settings.
pub(super) struct Description<'a> {
    whole: &'a Node,
    nodes: Vec<&'a Node>,
    pairs: Vec<(String, String)>,
}

impl<'a> Description<'a> {
    /// An empty description at `whole`.
    pub(super) const fn new(whole: &'a Node) -> Self {
        Self {
            whole,
            nodes: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// The description of a split link.
    pub(super) fn of_link(link: &'a Node) -> Result<Self, Problem> {
        let Item::Table(pieces) = &link.item else {
            return Err(link.problem("a link is missing"));
        };
        let mut description = Self::new(link);
        for (key, node) in &pieces.0 {
            if !OUTSIDE.contains(&key.as_str()) {
                description.add(key, node)?;
            }
        }
        Ok(description)
    }

    /// The node it is read from.
    pub(super) const fn whole(&self) -> &'a Node {
        self.whole
    }

    /// Adds a setting.
    pub(super) fn add(&mut self, key: &str, node: &'a Node) -> Result<(), Problem> {
        let words: Result<Vec<_>, _> = node.members().iter().map(Node::words).collect();
        self.pairs.push((key.to_owned(), words?.join("+")));
        self.nodes.push(node);
        Ok(())
    }

    pub(super) fn text(&self) -> String {
        let pieces = self.pairs.iter().map(|(key, value)| match key.as_str() {
            "preset" => value.clone(),
            key => format!("{key}={value}"),
        });
        pieces.collect::<Vec<_>>().join(", ")
    }

    /// The problem for `error`, at the place of the setting that it names; this is the description of a
    /// `what`.
    pub(super) fn problem(&self, error: &SpecError, what: &str) -> Problem {
        let named = self.pairs.iter().position(|(key, _)| *key == error.key);
        let node = named.map_or(self.whole, |index| self.nodes[index]);
        node.problem(format_args!("{error} (in the {what} \"{}\")", self.text()))
    }
}
