//! Builds the network of a scenario.

use std::collections::BTreeMap;

use marline_link::{LinkSpec, Medium, Seed};
use marline_sim::fabric::{
    Changing, Fabric, Nat, Node, Plan, PlanError, Routed, SharedLink, Switch,
};

use super::failed;
use crate::scenario::{Change, LinkDef, RunError, Topology};

/// The label from which the seeds of links derive.
const LINKS: &str = "links";

/// The seed of a link in a run with `seed`.
pub(super) fn seed_of(link: &LinkDef, seed: Seed) -> Seed {
    seed.of(LINKS).of(&link.name)
}

/// A change of a link.
pub(super) struct LinkChange<'a> {
    /// The number of the change, from 1.
    pub(super) number: usize,
    pub(super) link: &'a LinkDef,
}

impl LinkChange<'_> {
    /// The seed of the link from then on; `before` is the link's.
    pub(super) fn seed(&self, before: Seed) -> Seed {
        before.nth(self.number as u64)
    }
}

/// The changes of `link`.
pub(super) fn changes_of<'a>(
    link: &'a LinkDef,
    changes: &'a [Change],
) -> impl Iterator<Item = LinkChange<'a>> {
    (1..).zip(changes).filter_map(|(number, change)| {
        let mut links = change.links.iter();
        let link = links.find(|def| def.name == link.name)?;
        Some(LinkChange { number, link })
    })
}

/// Builds the network of `topology`, without changes. Equal seeds give links with equal draws.
///
/// # Errors
/// A link's description is invalid, or the network is not connected.
pub fn network<B>(topology: &Topology, seed: Seed) -> Result<Fabric<B>, RunError>
where
    B: Routed + Clone + Send + 'static,
{
    changing_network(topology, &[], &Switch::default(), seed)
}

/// As [`network`], but each of `changes` is made when `switch` is at its number, from 1.
///
/// # Errors
/// As above; also if a link changes between one medium and two.
pub fn changing_network<B>(
    topology: &Topology,
    changes: &[Change],
    switch: &Switch,
    seed: Seed,
) -> Result<Fabric<B>, RunError>
where
    B: Routed + Clone + Send + 'static,
{
    let mut plan = Plan::new();
    let mut nodes = BTreeMap::new();
    for host in &topology.hosts {
        nodes.insert(host.as_str(), plan.host(host));
    }
    for router in &topology.routers {
        nodes.insert(router.as_str(), plan.router(router));
    }
    for (index, link) in topology.links.iter().enumerate() {
        if let Some(name) = &link.channel {
            let same = |other: &LinkDef| other.channel.as_ref() == Some(name);
            if !topology.links[..index].iter().any(same) {
                let phases = Phases {
                    topology,
                    changes,
                    switch,
                };
                join_channel(&mut plan, &phases, name, &nodes, seed.of(LINKS))?;
            }
            continue;
        }
        let spec: LinkSpec = link.spec.parse().map_err(failed)?;
        let mut media = media(link, changes, switch, seed_of(link, seed))?;
        if let Some(timeout) = spec.nat
            && let Some(last) = media.pop()
        {
            if !B::HAS_PORTS {
                return Err(RunError::Unsupported(format!(
                    "link {}: the NAT of a link needs the simulator; leave `nat` out",
                    link.name
                )));
            }
            media.push(Box::new(Nat::new(last, timeout, seed_of(link, seed))));
        }
        let ends = link.between.iter().map(|name| {
            let node = nodes.get(name.as_str()).copied();
            node.ok_or_else(|| failed(format_args!("link {}: no node {name:?}", link.name)))
        });
        let ends = ends.collect::<Result<Vec<_>, _>>()?;
        let [near, far] = ends[..] else {
            return Err(RunError::Unsupported(format!(
                "link {} joins {} nodes; links join two",
                link.name,
                ends.len()
            )));
        };
        plan.join_link(&link.name, &spec.radio, media, [near, far])
            .map_err(failed_plan)?;
    }
    plan.build().map_err(failed_plan)
}

/// A network, and how it changes.
struct Phases<'a> {
    topology: &'a Topology,
    changes: &'a [Change],
    switch: &'a Switch,
}

impl Phases<'_> {
    /// The channel `name` over time.
    fn channel<B>(&self, name: &str, seed: Seed) -> Result<Box<dyn Medium<B>>, RunError>
    where
        B: Send + 'static,
    {
        let build = |topology: &Topology, seed| {
            let def = topology.channels.iter().find(|def| def.name == name);
            let def = def.ok_or_else(|| failed(format_args!("there is no channel {name:?}")))?;
            let channel = def.read(topology).map_err(failed)?;
            channel.spec.build(seed).map_err(failed)
        };
        let first = build(self.topology, seed)?;
        let mut now = self.topology.clone();
        let mut later = Vec::new();
        for (number, change) in (1..).zip(self.changes) {
            if now.change(change, name) {
                later.push((number, build(&now, seed.nth(number as u64))?));
            }
        }
        if later.is_empty() {
            return Ok(first);
        }
        let changing = later.into_iter().fold(
            Changing::new(first, self.switch.clone()),
            |changing, (number, medium)| changing.then(number, medium),
        );
        Ok(Box::new(changing))
    }
}

/// Joins the nodes of the channel `name` by all its links.
fn join_channel<B>(
    plan: &mut Plan<B>,
    phases: &Phases<'_>,
    name: &str,
    nodes: &BTreeMap<&str, Node>,
    seed: Seed,
) -> Result<(), RunError>
where
    B: Clone + Send + 'static,
{
    let topology = phases.topology;
    let def = topology.channels.iter().find(|def| def.name == name);
    let def = def.ok_or_else(|| failed(format_args!("there is no channel {name:?}")))?;
    let channel = def.read(topology).map_err(failed)?;
    let node = |name: &str| {
        let node = nodes.get(name).copied();
        node.ok_or_else(|| failed(format_args!("channel {}: no node {name:?}", def.name)))
    };
    let stations = channel.stations.iter().map(|name| node(name));
    let stations = stations.collect::<Result<Vec<_>, _>>()?;
    let mut links = Vec::new();
    for link in channel.links {
        let [near, far] = &link.between[..] else {
            return Err(failed(format_args!(
                "link {} does not join two nodes",
                link.name
            )));
        };
        links.push(SharedLink {
            name: link.name.clone(),
            ends: [node(near)?, node(far)?],
        });
    }
    let medium = phases.channel(name, seed.of("channels").of(name))?;
    plan.join_shared(medium, &stations, links)
        .map_err(failed_plan)
}

/// The media of `link`, which change with `switch`.
fn media<B>(
    link: &LinkDef,
    changes: &[Change],
    switch: &Switch,
    seed: Seed,
) -> Result<Vec<Box<dyn Medium<B>>>, RunError>
where
    B: Clone + Send + 'static,
{
    let build = |spec: &str, seed| {
        let spec: LinkSpec = spec.parse().map_err(failed)?;
        spec.build(seed).map_err(failed)
    };
    let media = build(&link.spec, seed)?;
    let mine: Vec<_> = changes_of(link, changes).collect();
    if mine.is_empty() {
        return Ok(media);
    }
    let begin = |medium| Changing::new(medium, switch.clone());
    let mut changing: Vec<_> = media.into_iter().map(begin).collect();
    for change in mine {
        let next = build(&change.link.spec, change.seed(seed))?;
        if next.len() != changing.len() {
            return Err(RunError::Unsupported(format!(
                "link {} cannot gain or lose its radio in a change",
                link.name
            )));
        }
        let each = changing.into_iter().zip(next);
        changing = each
            .map(|(one, medium)| one.then(change.number, medium))
            .collect();
    }
    let boxed = |one| Box::new(one) as Box<dyn Medium<B>>;
    Ok(changing.into_iter().map(boxed).collect())
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed_plan(error: PlanError) -> RunError {
    RunError::Unsupported(error.to_string())
}
