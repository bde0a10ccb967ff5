//! Dotted keys that replace values of a document: from variants, sweeps and `--set`.

use std::collections::HashMap;

use super::document::{Item, Node, Table, parse_value};
use super::error::{Place, Problem};
use super::keys::{self, WORKLOADS, is_endpoint_key};
use super::{initial_window, links};

/// Largest number of parts of a key: no key of a scenario has nearly as many, and tables are walked recursively.
const MAX_DEPTH: usize = 32;

/// One value to replace.
#[derive(Clone, Debug)]
pub(super) struct Override {
    /// The key, split at its dots.
    pub(super) path: Vec<String>,
    /// The new value.
    pub(super) node: Node,
}

impl Override {
    pub(super) fn new(path: &str, node: Node) -> Self {
        let mut path: Vec<_> = path.split('.').map(str::to_owned).collect();
        keys::spell(&mut path);
        keys::put_into_table(&mut path, &node);
        Self { path, node }
    }

    /// Reads `KEY=VALUE`.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let place = Place::Set(text.to_owned());
        match text.split_once('=') {
            Some((key, _)) if key.matches('.').count() >= MAX_DEPTH => Err(Problem::new(
                &place,
                format!("the key has more than {MAX_DEPTH} parts"),
            )),
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self::new(key.trim(), parse_value(value.trim(), &place)?))
            }
            _ => Err(Problem::new(
                &place,
                "this is not an override; write KEY=VALUE, as in link.loss=2%",
            )),
        }
    }

    pub(super) fn key(&self) -> String {
        self.path.join(".")
    }
}

/// Largest number of overrides in one variant or point: no document has nearly as many keys, and each is compared
/// with the others.
const MAX_OVERRIDES: usize = 1000;

/// All values in `table` as overrides; tables in it become dotted keys.
///
/// # Errors
/// A key has too many parts or is duplicated, or there are too many.
pub(super) fn flatten(table: &Table) -> Result<Vec<Override>, Problem> {
    let mut overrides = Vec::new();
    for (key, node) in &table.0 {
        flatten_into(key, key, node, &mut overrides)?;
    }
    refuse_twice(&overrides)?;
    Ok(overrides)
}

fn flatten_into(
    path: &str,
    key: &str,
    node: &Node,
    into: &mut Vec<Override>,
) -> Result<(), Problem> {
    if key.matches('.').count() >= MAX_DEPTH {
        return Err(node.problem(format!("the key has more than {MAX_DEPTH} parts")));
    }
    match &node.item {
        Item::Table(inner) => inner
            .0
            .iter()
            .try_for_each(|(key, node)| flatten_into(&format!("{path}.{key}"), key, node, into)),
        _ if into.len() >= MAX_OVERRIDES => Err(node.problem(format_args!(
            "there are more than {MAX_OVERRIDES} keys; leave some out"
        ))),
        _ => {
            into.push(Override::new(path, node.clone()));
            Ok(())
        }
    }
}

/// Refuses a key that is set in two spellings: with `-` and with `_`, or in its table and outside of it.
fn refuse_twice(overrides: &[Override]) -> Result<(), Problem> {
    let mut seen: HashMap<&[String], &Place> = HashMap::new();
    for change in overrides {
        if let Some(first) = seen.insert(&change.path, &change.node.place) {
            return Err(change.node.problem(first.twice()));
        }
    }
    Ok(())
}

/// The same for the keys of ends in a document: of both, of one, of members of the background.
pub(super) fn refuse_twice_in_ends(root: &Table) -> Result<(), Problem> {
    let side = |key| root.get(key).into_iter();
    let background = side("background").flat_map(Node::members);
    let ends = side("client").chain(side("server")).chain(background);
    let tables = ends.filter_map(|node| match &node.item {
        Item::Table(table) => Some(table),
        _ => None,
    });
    for table in std::iter::once(root).chain(tables) {
        let mut overrides = Vec::new();
        for (key, node) in &table.0 {
            if is_endpoint_key(key) {
                flatten_into(key, key, node, &mut overrides)?;
            }
        }
        refuse_twice(&overrides)?;
    }
    Ok(())
}

/// Applies `overrides`; those of whole tables are applied before those of their keys.
pub(super) fn apply_all(root: &mut Table, overrides: &[Override]) -> Result<(), Problem> {
    let mut ordered: Vec<_> = overrides.iter().collect();
    ordered.sort_by_key(|change| change.path.len());
    ordered
        .into_iter()
        .try_for_each(|change| apply(root, change))
}

fn apply(root: &mut Table, change: &Override) -> Result<(), Problem> {
    let mut node = keys::make_table(&change.path, change.node.clone());
    let path: Vec<_> = change.path.iter().map(String::as_str).collect();
    if let ["initial_window"]
    | ["client" | "server", "initial_window"]
    | ["background", _, "initial_window"] = path.as_slice()
    {
        node = initial_window::take_apart(node);
    }
    match path.as_slice() {
        ["link" | "links" | "paths"] => {
            for other in ["link", "links", "paths"] {
                root.remove(other);
            }
            root.set(path[0], node);
            take_links_apart(root)
        }
        ["link", key @ ..] => set_in_link(root.get_mut("link"), &key.join("."), node),
        ["links", name, key @ ..] if !key.is_empty() => {
            let link = root.get_mut("links").and_then(|links| member(links, name));
            match key {
                ["between" | "channel"] => set_in(link, key[0], node),
                _ => set_in_link(link, &key.join("."), node),
            }
        }
        ["channels", name, key @ ..] if !key.is_empty() => {
            let channels = root.get_mut("channels");
            let channel = channels.and_then(|channels| member(channels, name));
            match channel.map(|channel| &mut channel.item) {
                Some(Item::Table(pieces)) => {
                    links::set(pieces, &key.join("."), node);
                    Ok(())
                }
                _ => Err(node.problem("there is no such channel; add [channels.NAME]")),
            }
        }
        ["paths", _] => set_at(root, &path, links::take_apart(node)?),
        ["paths", number, key @ ..] if !key.is_empty() => {
            let paths = root.get_mut("paths");
            let path = paths.and_then(|paths| member(paths, number));
            set_in_link(path, &key.join("."), node)
        }
        [key, ..] if is_endpoint_key(key) => {
            for side in ["client", "server"] {
                remove_at(root.get_mut(side), &path);
            }
            set_at(root, &path, node)
        }
        ["workload", kind] if WORKLOADS.contains(kind) => {
            if let Some(Item::Table(table)) = root.get_mut("workload").map(|node| &mut node.item) {
                for other in WORKLOADS {
                    table.remove(other);
                }
            }
            set_at(root, &path, node)
        }
        _ => set_at(root, &path, node),
    }
}

fn set_at(table: &mut Table, path: &[&str], node: Node) -> Result<(), Problem> {
    let [key, rest @ ..] = path else {
        return Ok(());
    };
    if rest.is_empty() {
        table.set(key, node);
        return Ok(());
    }
    if table.get(key).is_none() {
        let empty = Node {
            place: node.place.clone(),
            item: Item::Table(Table::default()),
        };
        table.set(key, empty);
    }
    let mut inner = table.get_mut(key);
    let mut rest = rest;
    while let (Some(Item::List(_)), [name, after @ ..]) =
        (inner.as_deref().map(|node| &node.item), rest)
    {
        inner = inner.and_then(|list| member(list, name));
        if inner.is_none() {
            return Err(node.problem(format_args!(
                "\"{key}\" has no member \"{name}\"; they are counted from 1"
            )));
        }
        rest = after;
    }
    match inner.map(|inner| &mut inner.item) {
        Some(slot) if rest.is_empty() => {
            *slot = node.item;
            Ok(())
        }
        Some(Item::Table(table)) => set_at(table, rest, node),
        _ => Err(node.problem(format_args!(
            "there is nothing in \"{key}\" to set; it is a value, not a table"
        ))),
    }
}

fn remove_at(node: Option<&mut Node>, path: &[&str]) {
    if let (Some(Item::Table(table)), [key, rest @ ..]) = (node.map(|node| &mut node.item), path) {
        if rest.is_empty() {
            table.remove(key);
        } else {
            remove_at(table.get_mut(key), rest);
        }
    }
}

/// The member of a table by name, or of a list by number, from 1.
fn member<'a>(node: &'a mut Node, name: &str) -> Option<&'a mut Node> {
    match &mut node.item {
        Item::Table(table) => table.get_mut(name),
        Item::List(nodes) => {
            let number: usize = name.parse().ok()?;
            nodes.get_mut(number.checked_sub(1)?)
        }
        _ => None,
    }
}

fn set_in(link: Option<&mut Node>, key: &str, node: Node) -> Result<(), Problem> {
    match link.map(|link| &mut link.item) {
        Some(Item::Table(table)) => {
            table.set(key, node);
            Ok(())
        }
        _ => Err(node.problem(NO_LINK)),
    }
}

fn set_in_link(link: Option<&mut Node>, key: &str, node: Node) -> Result<(), Problem> {
    match link.map(|link| &mut link.item) {
        Some(Item::Table(pieces)) => {
            links::set(pieces, key, node);
            Ok(())
        }
        _ => Err(node.problem(NO_LINK)),
    }
}

const NO_LINK: &str = "there is no such link; `link` is the only one, `links.NAME` one of several, \
                       `links.1` the first of a chain, `paths.1` the first of several paths";

/// Splits values written as one word or text, so that single settings can be replaced.
pub(super) fn take_apart(root: &mut Table) -> Result<(), Problem> {
    take_words_apart(root);
    for side in ["client", "server"] {
        if let Some(Item::Table(table)) = root.get_mut(side).map(|node| &mut node.item) {
            take_words_apart(table);
        }
    }
    if let Some(Item::List(members)) = root.get_mut("background").map(|node| &mut node.item) {
        for member in members {
            if let Item::Table(table) = &mut member.item {
                take_words_apart(table);
            }
        }
    }
    take_links_apart(root)
}

fn take_words_apart(table: &mut Table) {
    keys::make_tables(table);
    if let Some(node) = table.get_mut("initial_window") {
        *node = initial_window::take_apart(node.clone());
    }
}

/// Splits all links of a document.
fn take_links_apart(root: &mut Table) -> Result<(), Problem> {
    if let Some(link) = root.get_mut("link") {
        *link = links::take_apart(link.clone())?;
    }
    if let Some(paths) = root.get_mut("paths") {
        let Item::List(nodes) = &mut paths.item else {
            return Err(paths.problem(
                "paths are a list, as [\"rate=10mbps, rtt=20ms\", \"rate=5mbps, rtt=80ms\"]",
            ));
        };
        for node in nodes {
            *node = links::take_apart(node.clone())?;
        }
    }
    if let Some(Item::Table(channels)) = root.get_mut("channels").map(|node| &mut node.item) {
        for (_, node) in &mut channels.0 {
            *node = links::take_apart(node.clone())?;
        }
    }
    let Some(all) = root.get_mut("links") else {
        return Ok(());
    };
    match &mut all.item {
        Item::List(nodes) => {
            for node in nodes {
                *node = links::take_apart(node.clone())?;
            }
        }
        Item::Table(table) => {
            for (_, node) in &mut table.0 {
                *node = links::take_apart(node.clone())?;
            }
        }
        _ => {
            return Err(all.problem(
                "links are a list from the client to the server, or tables [links.NAME]",
            ));
        }
    }
    Ok(())
}
