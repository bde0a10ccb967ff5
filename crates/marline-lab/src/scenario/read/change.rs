//! Reads `[[change]]`.

use marline_link::spec::{ChannelSpec, LinkSpec};

use super::topology::path_name;
use super::{Item, Node, Problem, Reader};
use crate::scenario::links::{Description, put_together, refuse_outside, set, take_apart};
use crate::scenario::{Change, LinkDef, Topology, When, Workload};

/// Reads the changes of links in the order of the list. Each changes the links that the previous ones left.
pub(super) fn read_changes(
    reader: &mut Reader<'_>,
    topology: &Topology,
    workload: &Workload,
) -> Result<Vec<Change>, Problem> {
    let Some(node) = reader.get("change") else {
        return Ok(Vec::new());
    };
    if !matches!(node.item, Item::List(_)) {
        return Err(node.problem("change is a list; begin each member with [[change]]"));
    }
    let mut now = topology.clone();
    let mut changes: Vec<Change> = Vec::new();
    for node in node.members() {
        let change = read_one(node, &mut now, workload)?;
        if let Some(before) = changes.last() {
            let follows = match (before.when, change.when) {
                (When::At(before), When::At(at)) => before <= at,
                (When::BeforeVisit(before), When::BeforeVisit(visit)) => before <= visit,
                _ => false,
            };
            if !follows {
                let text = "changes come in their order, all by `at` or all by `before_visit`";
                return Err(node.problem(text));
            }
        }
        changes.push(change);
    }
    Ok(changes)
}

fn read_one(node: &Node, now: &mut Topology, workload: &Workload) -> Result<Change, Problem> {
    let mut reader = Reader::of(node)?;
    let visits = match workload {
        Workload::Visits { visits, .. } => visits.len() as u64,
        _ => 0,
    };
    let visit = |node: &Node| match visits {
        0 => Err(node.problem("there are no visits; use `at`, or make the workload visits")),
        _ => Ok(node.within(1..=visits)? as usize),
    };
    let at = reader.optional("at", Node::time)?;
    let before = reader.optional("before_visit", visit)?;
    let when = match (at, before) {
        (Some(at), None) => When::At(at),
        (None, Some(visit)) => When::BeforeVisit(visit),
        _ => {
            let text = "the time is missing or given twice; write at = \"3s\" or before_visit = 2";
            return Err(reader.problem(text));
        }
    };
    let mut changed = Vec::new();
    if let Some(link) = reader.get("link") {
        let [only] = &mut now.links[..] else {
            return Err(link.problem("there are several links; name one, as links.NAME or paths.2"));
        };
        change_link(only, link)?;
        changed.push(only.clone());
    }
    if let Some(links) = reader.get("links") {
        for (name, link) in &Reader::of(links)?.table.0 {
            let known: Vec<_> = now.links.iter().map(|def| def.name.clone()).collect();
            let Some(def) = now.links.iter_mut().find(|def| def.name == *name) else {
                let known = known.iter().map(String::as_str);
                return Err(link.problem(super::unknown("link", name, known)));
            };
            change_link(def, link)?;
            changed.push(def.clone());
        }
    }
    let mut channels = Vec::new();
    if let Some(node) = reader.get("channels") {
        for (name, channel) in &Reader::of(node)?.table.0 {
            let known: Vec<_> = now.channels.iter().map(|def| def.name.clone()).collect();
            let Some(def) = now.channels.iter_mut().find(|def| def.name == *name) else {
                let known = known.iter().map(String::as_str);
                return Err(channel.problem(super::unknown("channel", name, known)));
            };
            def.spec = amended_on_channel(&def.spec, channel, "channel")?;
            channels.push(def.clone());
        }
    }
    // Each link on its own is valid; the channel with all of them must be, too.
    let altered = changed.iter().filter_map(|link| link.channel.as_ref());
    let altered = altered.chain(channels.iter().map(|def| &def.name));
    for name in altered {
        if let Some(def) = now.channels.iter().find(|def| def.name == *name) {
            let read = def.read(now);
            read.map_err(|error| reader.problem(format_args!("channel {name}: {error}")))?;
        }
    }
    if let Some(paths) = reader.get("paths") {
        let known: Vec<_> = (1..=now.links.len()).map(|path| path.to_string()).collect();
        for (number, link) in &Reader::of(paths)?.table.0 {
            let name = path_name(number);
            let Some(def) = now.links.iter_mut().find(|def| def.name == name) else {
                let known = known.iter().map(String::as_str);
                return Err(link.problem(super::unknown("path", number, known)));
            };
            change_link(def, link)?;
            changed.push(def.clone());
        }
    }
    if changed.is_empty() && channels.is_empty() {
        return Err(reader.problem("nothing changes; add link.rate = \"1mbps\""));
    }
    reader.finish()?;
    Ok(Change {
        when,
        links: changed,
        channels,
    })
}

/// Changes the link `def` as `node` says.
fn change_link(def: &mut LinkDef, node: &Node) -> Result<(), Problem> {
    def.spec = match def.channel {
        Some(_) => amended_on_channel(&def.spec, node, "link")?,
        None => {
            let spec = amended(&def.spec, node)?;
            refuse_other_parts([&def.spec, &spec], node)?;
            spec
        }
    };
    Ok(())
}

/// Refuses a change that a link cannot make while it runs: it keeps its NAT and the media that it consists of. `specs` are
/// the link's before and after.
fn refuse_other_parts(specs: [&str; 2], node: &Node) -> Result<(), Problem> {
    let read = |spec: &str| {
        let spec: Result<LinkSpec, _> = spec.parse();
        spec.map_err(|error| node.problem(error))
    };
    let (before, after) = (read(specs[0])?, read(specs[1])?);
    let problem = if before.nat != after.nat {
        "a NAT does not change during a run; set nat for the whole link"
    } else if before.radio.parts() != after.radio.parts() {
        "a change neither adds nor removes a radio, its hops or its cable; let the link begin with them"
    } else if !before.has_wire() && after.has_wire() {
        "the link is a radio alone, and a change does not add the wire behind it, to which this belongs; let the \
         link begin with one, as rtt = \"1ms\""
    } else if before.has_wire() && !after.has_wire() {
        "a change does not remove the wire behind the radio; leave a setting of it, as rtt = \"1ms\""
    } else {
        return Ok(());
    };
    Err(innermost(node).problem(problem))
}

/// The value in `node` if there is only one.
fn innermost(node: &Node) -> &Node {
    match &node.item {
        Item::Table(table) => match &table.0[..] {
            [(_, only)] => innermost(only),
            _ => node,
        },
        _ => node,
    }
}

/// The description `spec` of a channel or one of its links with the settings of `node` replaced.
fn amended_on_channel(spec: &str, node: &Node, what: &str) -> Result<String, Problem> {
    let merged = merged(spec, node)?;
    let description = Description::of_link(&merged)?;
    let text = description.text();
    let checked = match what {
        "channel" => ChannelSpec::new(&text).map(drop),
        _ => ChannelSpec::new("").and_then(|mut channel| channel.add_link([0, 1], &text)),
    };
    checked.map_err(|error| description.problem(&error, what))?;
    Ok(text)
}

/// The link `spec` with the settings of `node` replaced.
fn amended(spec: &str, node: &Node) -> Result<String, Problem> {
    put_together(&merged(spec, node)?)
}

/// The description `spec` with the settings of `node` replaced, not checked.
fn merged(spec: &str, node: &Node) -> Result<Node, Problem> {
    let text = Node {
        place: node.place.clone(),
        item: Item::Text(spec.to_owned()),
    };
    let mut link = take_apart(text)?;
    let new = take_apart(node.clone())?;
    refuse_outside(&new)?;
    if let (Item::Table(pieces), Item::Table(new)) = (&mut link.item, new.item) {
        for (key, value) in new.0 {
            set(pieces, &key, value);
        }
    }
    Ok(link)
}
