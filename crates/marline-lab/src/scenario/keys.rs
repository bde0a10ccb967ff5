//! Keys shared by several readers.

use marline::TransportConfig;
use marline::settings::{is_key, keys};

use super::Direction;
use super::document::{Item, Node, Table};

/// The top-level keys of settings, except `path`: a parameter may have that name, as no key is below it.
pub(super) const SETTINGS_KEYS: [&str; 14] = [
    "link",
    "links",
    "paths",
    "channels",
    "hosts",
    "routers",
    "ecmp",
    "client",
    "server",
    "http",
    "workload",
    "background",
    "change",
    "time_limit",
];

/// The top-level keys of an experiment that are no settings of its runs.
pub(super) const EXPERIMENT_KEYS: [&str; 15] = [
    "id",
    "title",
    "paper",
    "section",
    "shows",
    "seed",
    "repeats",
    "quick_repeats",
    "sweep",
    "metrics",
    "variant",
    "comparison",
    "published",
    "correlation",
    "must",
];

/// Keys of the table `multipath` that are also accepted outside of it.
pub(super) const FLAT_KEYS: [(&str, &str); 4] = [
    ("path_scheduler", "scheduler"),
    ("reinjection", "reinjection"),
    ("same_tuple_paths", "same_tuple_paths"),
    ("bundle_paths", "bundle_paths"),
];

/// The table of these keys.
pub(super) const MULTIPATH: &str = "multipath";

/// Keys that apply to both ends.
pub(super) fn endpoint_keys() -> impl Iterator<Item = &'static str> {
    let settings = keys(TransportConfig::SETTINGS);
    let flat = FLAT_KEYS.iter().map(|(key, _)| *key);
    std::iter::once("profile").chain(settings).chain(flat)
}

/// Whether `key` applies to both ends.
pub(super) fn is_endpoint_key(key: &str) -> bool {
    endpoint_keys().any(|known| is_key(key, known))
}

/// Whether settings begin with `key`.
pub(super) fn is_settings_key(key: &str) -> bool {
    SETTINGS_KEYS.iter().any(|known| is_key(key, known)) || is_endpoint_key(key)
}

/// Spells a dotted key of settings with `_`, except below links, which have names and keys of their own.
pub(super) fn spell(path: &mut [String]) {
    if !path.first().is_some_and(|first| is_settings_key(first)) {
        return;
    }
    let is_above =
        |key: &&mut String| !matches!(key.as_str(), "link" | "links" | "paths" | "channels");
    for key in path.iter_mut().take_while(is_above) {
        *key = key.replace('-', "_");
    }
}

/// The index in a dotted key at which the keys of an end begin: at the top level, in one end, in a member of
/// the background.
fn of_end(path: &[String]) -> usize {
    match path.first().map(String::as_str) {
        Some("client" | "server") => 1,
        Some("background") => 2,
        _ => 0,
    }
}

/// Moves a dotted key into its table: `path_scheduler` becomes `multipath.scheduler`, and `multipath = true`
/// becomes `multipath.on`.
pub(super) fn put_into_table(path: &mut Vec<String>, node: &Node) {
    let at = of_end(path);
    let Some(key) = path.get(at) else { return };
    if let Some((_, inner)) = FLAT_KEYS.iter().find(|(flat, _)| flat == key) {
        path[at] = (*inner).to_owned();
        path.insert(at, MULTIPATH.to_owned());
    }
    let of_end: Vec<_> = path[at..].iter().map(String::as_str).collect();
    if is_table(&of_end) && matches!(node.item, Item::Switch(_)) {
        path.push("on".to_owned());
    }
}

/// Whether a dotted key of an end is a table that may also be written as a switch or a word.
fn is_table(key: &[&str]) -> bool {
    matches!(key, ["bundle" | MULTIPATH] | [MULTIPATH, "bundle_paths"])
}

/// Turns a word for the dotted key `path` into a table.
pub(super) fn make_table(path: &[String], node: Node) -> Node {
    let of_end: Vec<_> = path[of_end(path).min(path.len())..]
        .iter()
        .map(String::as_str)
        .collect();
    if is_table(&of_end) {
        table_of_word(node)
    } else {
        node
    }
}

/// Turns `bundle = "published"` and `bundle = true` into tables, so that single keys can be replaced.
fn table_of_word(node: Node) -> Node {
    let key = match node.item {
        Item::Text(_) => "base",
        Item::Switch(_) => "on",
        _ => return node,
    };
    Node {
        place: node.place.clone(),
        item: Item::Table(Table(vec![(key.to_owned(), node)])),
    }
}

/// Turns words for keys of an end in `table` into tables.
pub(super) fn make_tables(table: &mut Table) {
    for key in ["bundle", MULTIPATH] {
        if let Some(node) = table.get_mut(key) {
            *node = table_of_word(node.clone());
        }
    }
    for (flat, inner) in FLAT_KEYS {
        let Some(node) = table.remove(flat) else {
            continue;
        };
        if table.get(MULTIPATH).is_none() {
            let empty = Node {
                place: node.place.clone(),
                item: Item::Table(Table::default()),
            };
            table.set(MULTIPATH, empty);
        }
        if let Some(Item::Table(multipath)) = table.get_mut(MULTIPATH).map(|node| &mut node.item) {
            multipath.set(inner, node);
        }
    }
    if let Some(Item::Table(multipath)) = table.get_mut(MULTIPATH).map(|node| &mut node.item)
        && let Some(node) = multipath.get_mut("bundle_paths")
    {
        *node = table_of_word(node.clone());
    }
}

/// Kinds of workload: setting one replaces the others.
pub(super) const WORKLOADS: [&str; 10] = [
    "objects", "files", "streams", "page", "devices", "measure", "visits", "transfer", "video",
    "call",
];

/// Directions of bytes.
pub(super) const DIRECTIONS: [(&str, Direction); 2] =
    [("down", Direction::Down), ("up", Direction::Up)];
