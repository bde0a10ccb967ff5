//! From what a scenario says to a network.

use std::collections::BTreeMap;

use marline_link::spec::Radio;
use marline_link::{LinkSpec, Seed};

use super::failed;
use crate::fabric::{Fabric, Plan, PlanError, Routed};
use crate::scenario::{RunError, Topology};

/// Builds the network of `topology`. Equal seeds give links with equal draws.
///
/// A radio and the wire behind it become two media, `link radio` and `link wire`, and a router between
/// them: the base station or the access point.
///
/// # Errors
/// A link's description does not hold, or the network does not hang together.
pub fn network<B>(topology: &Topology, seed: Seed) -> Result<Fabric<B>, RunError>
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
    let seed = seed.of("links");
    for link in &topology.links {
        let spec: LinkSpec = link.spec.parse().map_err(failed)?;
        let media = spec.build(seed.of(&link.name)).map_err(failed)?;
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
        let between = match spec.radio {
            Radio::Wifi(_) => "access point",
            Radio::Lte(_) | Radio::None => "base station",
        };
        let last = media.len().saturating_sub(1);
        let mut from = near;
        for (part, medium) in media.into_iter().enumerate() {
            let name = match (last, part) {
                (0, _) => link.name.clone(),
                (_, 0) => format!("{} radio", link.name),
                _ => format!("{} wire", link.name),
            };
            let to = if part == last {
                far
            } else {
                plan.router(format!("{between} of {}", link.name))
            };
            plan.join(name, medium, &[from, to]).map_err(failed_plan)?;
            from = to;
        }
    }
    plan.build().map_err(failed_plan)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed_plan(error: PlanError) -> RunError {
    RunError::Unsupported(error.to_string())
}
