//! Links in a document: a text of settings, taken apart so that each can be replaced.

use super::document::{Item, Node, Table};
use super::error::{Place, Problem};

/// Settings of which only one can hold.
const RIVALS: [(&str, &str); 2] = [("rtt", "delay"), ("delay", "rtt")];

/// Takes a link apart: `lte-a, loss=1%` becomes a table with `preset` and `loss`. A table stays one,
/// with its tables flattened: `down = { loss = "1%" }` becomes `down.loss`.
pub(super) fn take_apart(node: Node) -> Result<Node, Problem> {
    let mut pieces = Table::default();
    let place = node.place.clone();
    match node.item {
        Item::Text(text) => take_text(&text, &place, &mut pieces),
        Item::Table(table) => flatten("", table, &mut pieces)?,
        _ => {
            return Err(node.problem(format_args!(
                "{} is no link; write one as \"rate=12mbps, rtt=80ms\" or with a preset's name",
                node.kind()
            )));
        }
    }
    Ok(Node {
        place,
        item: Item::Table(pieces),
    })
}

fn take_text(text: &str, place: &Place, pieces: &mut Table) {
    for (index, piece) in split(text).into_iter().enumerate() {
        let (key, value) = match piece.split_once('=') {
            Some((key, value)) => (key.trim(), value.trim()),
            None if index == 0 => ("preset", piece),
            None => (piece, ""),
        };
        let node = Node {
            place: place.clone(),
            item: Item::Text(value.to_owned()),
        };
        pieces.set(key, node);
    }
}

fn flatten(prefix: &str, table: Table, pieces: &mut Table) -> Result<(), Problem> {
    for (key, node) in table.0 {
        let place = node.place.clone();
        match node.item {
            Item::Table(inner) => flatten(&format!("{prefix}{key}."), inner, pieces)?,
            Item::Text(text) if prefix.is_empty() && key == "spec" => {
                take_text(&text, &place, pieces);
            }
            item => pieces.set(&format!("{prefix}{key}"), Node { place, item }),
        }
    }
    Ok(())
}

/// Sets one setting of a link that was taken apart.
pub(super) fn set(pieces: &mut Table, key: &str, node: Node) {
    for (new, old) in RIVALS {
        if key == new {
            pieces.remove(old);
        }
    }
    if key == "preset" {
        pieces.remove(key);
        pieces.0.insert(0, (key.to_owned(), node));
    } else {
        pieces.set(key, node);
    }
}

/// Puts a link together again, and checks it. `between` is not part of it.
pub(super) fn put_together(link: &Node) -> Result<String, Problem> {
    let Item::Table(pieces) = &link.item else {
        return Err(link.problem("a link is missing"));
    };
    let mut words = Vec::new();
    for (key, node) in pieces.0.iter().filter(|(key, _)| key != "between") {
        let value = node.words()?;
        words.push(match (key.as_str(), value.as_str()) {
            ("preset", name) => name.to_owned(),
            (flag, "") => flag.to_owned(),
            (key, value) => format!("{key}={value}"),
        });
    }
    let spec = words.join(", ");
    check(&spec).map_err(|(key, problem)| {
        let node = key.and_then(|key| pieces.get(&key)).unwrap_or(link);
        node.problem(format_args!("{problem} (link \"{spec}\")"))
    })?;
    Ok(spec)
}

/// Whether `spec` is a link; if not, the setting at fault, and what to do.
fn check(spec: &str) -> Result<(), (Option<String>, String)> {
    if spec.is_empty() {
        let problem = "the link is empty; write one as \"rate=12mbps, rtt=80ms\"";
        return Err((None, problem.to_owned()));
    }
    Ok(())
}

/// Splits at commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(move |c: char| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    })
    .map(str::trim)
    .filter(|piece| !piece.is_empty())
    .collect()
}
