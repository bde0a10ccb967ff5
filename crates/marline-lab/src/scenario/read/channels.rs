//! Reads `[channels.NAME]`, and checks the links on them.

use marline_link::spec::ChannelSpec;

use super::{Item, Node, Problem, Reader, Table, unknown};
use crate::scenario::links::Description;
use crate::scenario::{ChannelDef, LinkDef, StationDef, Topology};

/// Reads the channels of `topology`, whose links are read already; `links` is the table of these.
pub(super) fn read_channels(
    channels: Option<&Node>,
    links: &Table,
    topology: &Topology,
) -> Result<Vec<ChannelDef>, Problem> {
    let empty = Table::default();
    let table = match channels {
        Some(node) => Reader::of(node)?.table,
        None => &empty,
    };
    check_links(table, links, topology)?;
    let channels = table.0.iter();
    channels
        .map(|(name, node)| read_channel(name, node, links, topology))
        .collect()
}

/// Checks that links name existing channels, and join two nodes, each pair once.
fn check_links(channels: &Table, links: &Table, topology: &Topology) -> Result<(), Problem> {
    let on_channels = || topology.links.iter().filter(|link| link.channel.is_some());
    for (index, link) in on_channels().enumerate() {
        let written = |key| match links.get(&link.name).map(|node| &node.item) {
            Some(Item::Table(table)) => table.get(key),
            _ => None,
        };
        let (Some(channel), Some(between)) = (written("channel"), written("between")) else {
            continue;
        };
        let name = channel.words()?;
        if channels.get(&name).is_none() {
            let known: Vec<_> = channels.0.iter().map(|(name, _)| name.as_str()).collect();
            return Err(channel.problem(match known.is_empty() {
                true => format!("there is no channel; add [channels.{name}]"),
                false => unknown("channel", &name, known),
            }));
        }
        if link.between.len() != 2 {
            return Err(between.problem(
                "a link of a channel joins two nodes; add a link for each two that send to each other",
            ));
        }
        let is_same = |other: &&LinkDef| {
            other.channel == link.channel
                && other.between.iter().all(|end| link.between.contains(end))
        };
        if let Some(other) = on_channels().take(index).find(is_same) {
            return Err(between.problem(format_args!(
                "link \"{}\" joins these on this channel already; leave one out",
                other.name
            )));
        }
    }
    Ok(())
}

fn read_channel(
    name: &str,
    node: &Node,
    links: &Table,
    topology: &Topology,
) -> Result<ChannelDef, Problem> {
    let Item::Table(pieces) = &node.item else {
        return Err(node.problem("a channel is a table with settings as wifi.phy = \"ht40\""));
    };
    let mut common = Description::new(node);
    let mut stations: Vec<(&str, Description<'_>)> = Vec::new();
    for (key, piece) in &pieces.0 {
        let Some(of_station) = key.strip_prefix("stations.") else {
            common.add(key, piece)?;
            continue;
        };
        let Some(at) = of_station.find(".wifi.") else {
            return Err(piece.problem("a station has keys as stations.NODE.wifi.acks = 2"));
        };
        let station = &of_station[..at];
        let known = stations.iter().position(|(known, _)| *known == station);
        let known = known.unwrap_or_else(|| {
            stations.push((station, Description::new(piece)));
            stations.len() - 1
        });
        stations[known].1.add(&of_station[at + 1..], piece)?;
    }
    let mut def = ChannelDef {
        name: name.to_owned(),
        spec: common.text(),
        stations: Vec::new(),
    };
    let mut spec =
        ChannelSpec::new(&def.spec).map_err(|error| common.problem(&error, "channel"))?;
    let own = topology.links.iter();
    let own: Vec<_> = own
        .filter(|link| link.channel.as_deref() == Some(name))
        .collect();
    let joined: Vec<_> = own.iter().flat_map(|link| &link.between).collect();
    if joined.is_empty() {
        return Err(node.problem(format_args!(
            "no link is on this channel; add channel = \"{name}\" to one of [links.NAME]"
        )));
    }
    for (station, description) in &stations {
        let text = description.text();
        if !joined.iter().any(|node| node == station) {
            let mut known: Vec<_> = joined.iter().map(|node| node.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(description
                .whole()
                .problem(unknown("station", station, known)));
        }
        let added = spec.add_station(&text);
        added.map_err(|error| description.problem(&error, "station"))?;
        def.stations.push(StationDef {
            node: (*station).to_owned(),
            spec: text,
        });
    }
    for link in own {
        let Some(node) = links.get(&link.name) else {
            continue;
        };
        let added = spec.add_link([0, 1], &link.spec);
        if let Err(error) = added {
            return Err(Description::of_link(node)?.problem(&error, "link"));
        }
    }
    Ok(def)
}
