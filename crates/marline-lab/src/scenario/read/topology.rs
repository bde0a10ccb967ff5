//! Reads `link`, `links`, `paths`, `hosts`, `routers`, `ecmp`, `path`.

use super::channels::read_channels;
use super::{Item, Node, Problem, Reader, Table, unknown};
use crate::scenario::links::{Description, put_together, refuse_outside};
use crate::scenario::{Ecmp, LinkDef, Topology};

const ECMP: [(&str, Ecmp); 2] = [("mixed", Ecmp::Mixed), ("xor", Ecmp::Xor)];

/// Largest number of paths: more are considered a mistake.
const MAX_PATHS: usize = 16;

pub(super) fn read_topology(reader: &mut Reader<'_>) -> Result<Topology, Problem> {
    let hosts = reader.get("hosts");
    let routers = reader.get("routers");
    let channels = reader.get("channels");
    let ecmp = reader.optional("ecmp", |node| node.named("ECMP hash", &ECMP))?;
    let kinds = ["link", "links", "paths"].map(|kind| (kind, reader.get(kind)));
    let mut there = kinds
        .into_iter()
        .filter_map(|(kind, node)| Some((kind, node?)));
    let (first, second) = (there.next(), there.next());
    if let (Some((first, _)), Some((_, second))) = (first, second) {
        return Err(second.problem(format_args!("there is `{first}` already; keep one of them")));
    }
    let topology = match first {
        Some(("link", link)) => chain(std::slice::from_ref(link), |_| "link".to_owned())?,
        Some(("paths", paths)) => parallel(paths)?,
        Some((_, links)) => match &links.item {
            Item::List(chained) if !chained.is_empty() => {
                chain(chained, |number| format!("link{number}"))?
            }
            Item::Table(table) if !table.0.is_empty() => {
                let nodes = Nodes { hosts, routers };
                named(table, &nodes, channels)?
            }
            _ => return Err(links.problem("there are no links; add one")),
        },
        None => {
            let example = "link = \"rate=12mbps, rtt=80ms\"";
            return Err(reader.problem(format_args!("link is missing; add {example}")));
        }
    };
    let named_only = [
        (hosts, "hosts"),
        (routers, "routers"),
        (channels, "channels"),
    ];
    for (node, what) in named_only {
        if let (Some(node), false) = (node, is_named(reader)) {
            return Err(node.problem(format_args!(
                "only links with names have {what}; leave them out, or name links as [links.NAME]"
            )));
        }
    }
    Ok(Topology {
        ecmp: ecmp.unwrap_or_default(),
        ..topology
    })
}

fn is_named(reader: &mut Reader<'_>) -> bool {
    let links = reader.get("links").map(|links| &links.item);
    matches!(links, Some(Item::Table(_)))
}

/// Client, routers and server in a chain.
fn chain(links: &[Node], name: impl Fn(usize) -> String) -> Result<Topology, Problem> {
    let routers: Vec<_> = (1..links.len())
        .map(|number| format!("r{number}"))
        .collect();
    let mut nodes = vec![Topology::CLIENT.to_owned()];
    nodes.extend(routers.iter().cloned());
    nodes.push(Topology::SERVER.to_owned());
    let mut defs = Vec::new();
    for (index, link) in links.iter().enumerate() {
        refuse_outside(link)?;
        defs.push(LinkDef {
            name: name(index + 1),
            between: nodes[index..index + 2].to_vec(),
            spec: put_together(link)?,
            channel: None,
        });
    }
    Ok(Topology {
        hosts: vec![Topology::CLIENT.to_owned(), Topology::SERVER.to_owned()],
        routers,
        links: defs,
        channels: Vec::new(),
        ecmp: Ecmp::default(),
    })
}

/// Client and server, joined by each of `paths`.
fn parallel(paths: &Node) -> Result<Topology, Problem> {
    let members = paths.members();
    if members.is_empty() {
        return Err(paths.problem("there are no paths; add one"));
    }
    if members.len() > MAX_PATHS {
        return Err(paths.problem(format_args!(
            "these are more than {MAX_PATHS} paths; leave some out"
        )));
    }
    let hosts = vec![Topology::CLIENT.to_owned(), Topology::SERVER.to_owned()];
    let links = (1..).zip(members).map(|(number, path)| {
        refuse_outside(path)?;
        Ok(LinkDef {
            name: path_name(number),
            between: hosts.clone(),
            spec: put_together(path)?,
            channel: None,
        })
    });
    Ok(Topology {
        links: links.collect::<Result<_, Problem>>()?,
        hosts,
        routers: Vec::new(),
        channels: Vec::new(),
        ecmp: Ecmp::default(),
    })
}

/// The name of the link that is a path.
pub(super) fn path_name(number: impl std::fmt::Display) -> String {
    format!("path{number}")
}

/// Reads the path on which connections begin, if there are several.
pub(super) fn read_path(
    reader: &mut Reader<'_>,
    topology: &Topology,
) -> Result<Option<usize>, Problem> {
    let has_paths = reader.get("paths").is_some();
    let path = reader.optional("path", |node| match has_paths {
        true => Ok(node.within(1..=topology.links.len() as u64)? as usize),
        false => Err(node.problem(
            "there is only one path; add paths = [\"rate=10mbps, rtt=20ms\", \"rate=5mbps, rtt=80ms\"]",
        )),
    })?;
    Ok(has_paths.then(|| path.unwrap_or(1)))
}

/// The lists of the nodes of named links.
struct Nodes<'a> {
    hosts: Option<&'a Node>,
    routers: Option<&'a Node>,
}

/// Named links.
fn named(links: &Table, nodes: &Nodes<'_>, channels: Option<&Node>) -> Result<Topology, Problem> {
    let Nodes { hosts, routers } = *nodes;
    let mut topology = Topology {
        hosts: vec![Topology::CLIENT.to_owned(), Topology::SERVER.to_owned()],
        routers: Vec::new(),
        links: Vec::new(),
        channels: Vec::new(),
        ecmp: Ecmp::default(),
    };
    for node in hosts.iter().flat_map(|node| node.members()) {
        let name = node.text()?;
        if name == Topology::CLIENT || name == Topology::SERVER {
            continue;
        }
        add(&mut topology.hosts, &[], name, node)?;
    }
    for node in routers.iter().flat_map(|node| node.members()) {
        add(&mut topology.routers, &topology.hosts, node.text()?, node)?;
    }
    for (name, link) in &links.0 {
        let Item::Table(table) = &link.item else {
            return Err(link.problem("a link is a table with `between` and its settings"));
        };
        let Some(ends) = table.get("between") else {
            return Err(link.problem(
                "between is missing; add the nodes it joins, as between = [\"client\", \"server\"]",
            ));
        };
        let between = ends.texts()?;
        for end in &between {
            let known = || topology.hosts.iter().chain(&topology.routers);
            if !known().any(|node| node == end) {
                let known = known().map(String::as_str);
                return Err(ends.problem(unknown("node", end, known)));
            }
        }
        let mut distinct = between.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < 2 || distinct.len() < between.len() {
            return Err(ends.problem("a link joins two different nodes, or more"));
        }
        let channel = table.get("channel").map(Node::words).transpose()?;
        let spec = match channel {
            None => put_together(link)?,
            Some(_) => Description::of_link(link)?.text(),
        };
        topology.links.push(LinkDef {
            name: name.clone(),
            between,
            spec,
            channel,
        });
    }
    topology.channels = read_channels(channels, links, &topology)?;
    check_routes(&topology, hosts, links)?;
    Ok(topology)
}

fn add(
    names: &mut Vec<String>,
    others: &[String],
    name: String,
    node: &Node,
) -> Result<(), Problem> {
    if names.contains(&name) || others.contains(&name) {
        return Err(node.problem(format_args!("\"{name}\" is there twice; rename one")));
    }
    names.push(name);
    Ok(())
}

/// Checks that every host has a link and a route to the server.
fn check_routes(topology: &Topology, hosts: Option<&Node>, links: &Table) -> Result<(), Problem> {
    let place = |name: &str| {
        let members = hosts.iter().flat_map(|node| node.members());
        let mut named =
            members.filter(|node| matches!(&node.item, Item::Text(text) if text == name));
        named.next().or_else(|| Some(&links.0.first()?.1))
    };
    let problem = |name: &str, text: String| match place(name) {
        Some(node) => node.problem(text),
        None => Problem::new(&super::Place::File, text),
    };
    // Hosts do not forward, routers do.
    let mut reached = vec![Topology::SERVER];
    let mut next = 0;
    while let Some(node) = reached.get(next).copied() {
        next += 1;
        let leads_on = node == Topology::SERVER || topology.routers.iter().any(|r| r == node);
        for link in &topology.links {
            if leads_on && link.between.iter().any(|end| end == node) {
                for end in &link.between {
                    if !reached.contains(&end.as_str()) {
                        reached.push(end);
                    }
                }
            }
        }
    }
    for host in &topology.hosts {
        let linked = topology
            .links
            .iter()
            .any(|link| link.between.contains(host));
        if !linked {
            let text = format!("host \"{host}\" has no link; name it in the `between` of one");
            return Err(problem(host, text));
        }
        if !reached.contains(&host.as_str()) {
            let text = format!(
                "no route from host \"{host}\" to \"server\"; join them by links and routers"
            );
            return Err(problem(host, text));
        }
    }
    Ok(())
}
