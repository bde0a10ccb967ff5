//! Values replaced by variants and sweeps. No run uses them, but people read them, and they apply again when their
//! replacement is removed.

use super::document::{Item, Node, Table};
use super::error::{Place, Problem};
use super::keys::WORKLOADS;
use super::overrides::{Override, apply_all};
use super::read::read_settings;

/// Largest number of values to check, each with a document of its own: scenarios replace some tens.
const MAX_CHECKS: usize = 200;

/// Refuses a value of `root` that `overrides` replace and that would be invalid without them.
///
/// # Errors
/// The problem of the value.
pub(super) fn refuse_invalid(root: &Table, overrides: &[Override]) -> Result<(), Problem> {
    let Err(problem) = read_settings(root) else {
        return Ok(());
    };
    let mut replaced = Vec::new();
    for change in overrides {
        let path: Vec<_> = change.path.iter().map(String::as_str).collect();
        let nodes = find(root, &path);
        if nodes.iter().any(|node| contains(node, &problem.place)) {
            return Err(problem);
        }
        if !nodes.is_empty() {
            replaced.push((change, nodes));
        }
    }
    // The document is not complete without its overrides: each value is tried with all but its own.
    for (change, nodes) in replaced.into_iter().take(MAX_CHECKS) {
        let others = overrides.iter().filter(|other| other.path != change.path);
        let others: Vec<_> = others.cloned().collect();
        let mut document = root.clone();
        let read = apply_all(&mut document, &others).and_then(|()| read_settings(&document));
        if let Err(problem) = read
            && nodes.iter().any(|node| contains(node, &problem.place))
        {
            return Err(problem);
        }
    }
    Ok(())
}

/// The values that a change of `path` replaces.
fn find<'a>(root: &'a Table, path: &[&str]) -> Vec<&'a Node> {
    match path {
        ["link" | "links" | "paths"] => keys(root, &["link", "links", "paths"]),
        ["workload", kind] if WORKLOADS.contains(kind) => match root.get("workload") {
            Some(Node {
                item: Item::Table(table),
                ..
            }) => keys(table, &WORKLOADS),
            _ => Vec::new(),
        },
        ["link", key @ ..] => in_link(root.get("link"), key),
        ["links" | "paths", name, key @ ..] if !key.is_empty() => {
            in_link(root.get(path[0]).and_then(|links| member(links, name)), key)
        }
        [first, rest @ ..] => {
            let found = root.get(first);
            let found = rest
                .iter()
                .try_fold(found, |node, key| Some(member(node?, key)));
            found.flatten().into_iter().collect()
        }
        [] => Vec::new(),
    }
}

fn keys<'a>(table: &'a Table, keys: &[&str]) -> Vec<&'a Node> {
    keys.iter().filter_map(|key| table.get(key)).collect()
}

/// A setting of a link, and the same for one of its directions.
fn in_link<'a>(link: Option<&'a Node>, key: &[&str]) -> Vec<&'a Node> {
    let key = key.join(".");
    let Some(Item::Table(pieces)) = link.map(|link| &link.item) else {
        return Vec::new();
    };
    let is_key = |piece: &str| {
        let one_way = piece.strip_prefix("up.").or(piece.strip_prefix("down."));
        piece == key || one_way == Some(&key)
    };
    let pieces = pieces.0.iter().filter(|(piece, _)| is_key(piece));
    pieces.map(|(_, node)| node).collect()
}

/// The member of a table by name, or of a list by number, from 1.
fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    match &node.item {
        Item::Table(table) => table.get(name),
        Item::List(nodes) => nodes.get(name.parse::<usize>().ok()?.checked_sub(1)?),
        _ => None,
    }
}

/// Whether something in `node` is at `place` in the file. Values from `--set` are made for the runs.
fn contains(node: &Node, place: &Place) -> bool {
    if !matches!(place, Place::Line { .. }) {
        return false;
    }
    let inside = match &node.item {
        Item::Table(table) => table.0.iter().any(|(_, node)| contains(node, place)),
        Item::List(nodes) => nodes.iter().any(|node| contains(node, place)),
        _ => false,
    };
    inside || node.place == *place
}
