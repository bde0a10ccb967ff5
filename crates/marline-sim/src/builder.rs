//! A builder for small networks.

use std::collections::BTreeMap;

use marline_link::spec::SpecError;
use marline_link::{LinkSpec, Seed};

use crate::config::SimConfig;
use crate::fabric::{Node, Plan, PlanError};
use crate::sim::Sim;

/// The links of a [`Sim`], by the names of the nodes that they join.
#[derive(Clone, Debug)]
#[must_use = "`build` makes the simulation"]
pub struct SimBuilder {
    seed: Seed,
    routers: Vec<String>,
    links: Vec<LinkPlan>,
}

#[derive(Clone, Debug)]
struct LinkPlan {
    name: String,
    ends: [String; 2],
    spec: String,
}

/// The reason why a network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The description of a link is invalid.
    #[error("link \"{link}\": {error}")]
    Link {
        /// Name of the link.
        link: String,
        /// Error in the description.
        #[source]
        error: SpecError,
    },
    /// The links do not form a valid network.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl SimBuilder {
    /// A network without links. The seeds of links and hosts derive from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed: Seed::new(seed),
            routers: Vec::new(),
            links: Vec::new(),
        }
    }

    /// Makes the node `name` a router. All other nodes are hosts.
    pub fn router(mut self, name: &str) -> Self {
        self.routers.push(name.to_owned());
        self
    }

    /// Joins two nodes by a link in the form of [`LinkSpec`]: `rate=10mbps,rtt=40ms,loss=1%`. The client's end
    /// of the description is the first node. The Mth link (from 1) gives its hosts the addresses
    /// 10.M.0.1 and 10.M.0.2; a link with a radio and a wire counts twice.
    pub fn link(mut self, name: &str, ends: [&str; 2], spec: &str) -> Self {
        self.links.push(LinkPlan {
            name: name.to_owned(),
            ends: ends.map(str::to_owned),
            spec: spec.to_owned(),
        });
        self
    }

    /// Builds the network and its hosts.
    ///
    /// # Errors
    /// If the description of a link is invalid, or there is no route between two hosts.
    pub fn build(self) -> Result<Sim, BuildError> {
        let mut plan = Plan::new();
        let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
        for name in self.routers {
            let router = plan.router(&name);
            nodes.insert(name, router);
        }
        let seed = self.seed.of("links");
        for LinkPlan { name, ends, spec } in self.links {
            let ends = ends.map(|end| match nodes.get(&end) {
                Some(&node) => node,
                None => {
                    let host = plan.host(&end);
                    nodes.insert(end, host);
                    host
                }
            });
            let wrong = |error| BuildError::Link {
                link: name.clone(),
                error,
            };
            let spec: LinkSpec = spec.parse().map_err(wrong)?;
            let media = spec.build(seed.of(&name)).map_err(wrong)?;
            plan.join_link(&name, &spec.radio, media, ends)?;
        }
        let config = SimConfig::new(self.seed.of("hosts"));
        Ok(Sim::new(plan.build()?, config))
    }
}
