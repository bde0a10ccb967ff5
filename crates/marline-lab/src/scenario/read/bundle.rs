//! `bundle`: a name, or a table of switches and the name that they start from.

use marline::coordination::bundle::{BundleConfig, MAX_MEMBERS};

use super::{Item, Node, Problem, Reader};
use crate::scenario::bundle::{BASES, COALESCE, MEASURED, NEVER, SCOPES};

/// The switches in `node`; what it leaves out is as in its `base`, or as in `start`.
pub(super) fn read_bundle(node: &Node, start: BundleConfig) -> Result<BundleConfig, Problem> {
    if !matches!(node.item, Item::Table(_)) {
        return Err(node.problem(format_args!(
            "{} is no bundle; write \"published\", \"default\" or a table of switches",
            node.kind()
        )));
    }
    let mut reader = Reader::of(node)?;
    let base = reader.optional("base", |node| node.named("bundle", &BASES))?;
    let mut config = base.map_or(start, |base| base());
    let BundleConfig {
        split_initial_window,
        sync_windows,
        sync_state,
        backoff,
        slow_start_growth,
        avoidance_growth,
        affected_growth,
        imbalance,
        rate_imbalance,
        backoff_on_delay,
        scope,
        coalesce,
        floor_packets,
        fair,
        connections,
        match_addresses,
        corroborated_by,
    } = &mut config;
    for (key, switch) in [
        ("split_initial_window", split_initial_window),
        ("sync_windows", sync_windows),
        ("sync_state", sync_state),
        ("backoff_on_delay", backoff_on_delay),
        ("fair", fair),
        ("match_addresses", match_addresses),
    ] {
        replace(switch, reader.optional(key, Node::switch)?);
    }
    for (key, ratio) in [
        ("avoidance_growth", avoidance_growth),
        ("affected_growth", affected_growth),
        ("imbalance", imbalance),
        ("rate_imbalance", rate_imbalance),
    ] {
        replace(ratio, reader.optional(key, at_least_one)?);
    }
    let measured = |node: &Node| number_or(MEASURED, node, Node::part);
    replace(backoff, reader.optional("backoff", measured)?);
    let measured = |node: &Node| number_or(MEASURED, node, at_least_one);
    replace(
        slow_start_growth,
        reader.optional("slow_start_growth", measured)?,
    );
    let part = |node: &Node| node.named("scope", &SCOPES);
    replace(scope, reader.optional("scope", part)?);
    let events = |node: &Node| node.named("way to coalesce", &COALESCE);
    replace(coalesce, reader.optional("coalesce", events)?);
    let packets = |node: &Node| node.within(1..=1000);
    replace(floor_packets, reader.optional("floor_packets", packets)?);
    let members = |node: &Node| node.within(1..=MAX_MEMBERS as u64);
    replace(connections, reader.optional("connections", members)?);
    let witnesses = |node: &Node| {
        let count = |node: &Node| Ok(node.within(1..=MAX_MEMBERS as u64)? as usize);
        number_or(NEVER, node, count)
    };
    replace(
        corroborated_by,
        reader.optional("corroborated_by", witnesses)?,
    );
    reader.finish()?;
    Ok(config)
}

fn replace<T>(slot: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *slot = new;
    }
}

/// `None` if it is `word`.
fn number_or<T>(
    word: &str,
    node: &Node,
    read: impl FnOnce(&Node) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    match &node.item {
        Item::Text(text) if text == word => Ok(None),
        Item::Text(text) => Err(node.problem(format_args!(
            "\"{text}\" is no number; write one, or \"{word}\""
        ))),
        _ => read(node).map(Some),
    }
}

/// What something grows by, or how unequal things may be.
fn at_least_one(node: &Node) -> Result<f64, Problem> {
    let ratio = node.number()?;
    match (1.0..=100.0).contains(&ratio) {
        true => Ok(ratio),
        false => Err(node.problem("this must be a number from 1 to 100, as 1.5")),
    }
}
