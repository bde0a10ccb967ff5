//! Small networks, described where they are used.

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

/// Why there is no such network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The text of a link is not a link.
    #[error("link \"{link}\": {error}")]
    Link {
        /// Its name.
        link: String,
        /// What is wrong with the text.
        #[source]
        error: SpecError,
    },
    /// The links make no network.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl SimBuilder {
    /// No links yet. Links and hosts derive their seeds from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed: Seed::new(seed),
            routers: Vec::new(),
            links: Vec::new(),
        }
    }

    /// Makes the node of this name a router, which forwards. All other nodes are hosts.
    pub fn router(mut self, name: &str) -> Self {
        self.routers.push(name.to_owned());
        self
    }

    /// Joins two nodes by a link as [`LinkSpec`] writes it: `rate=10mbps,rtt=40ms,loss=1%`. What the text
    /// calls the client's end is the first node. The Mth link (from 1) gives its hosts the addresses
    /// 10.M.0.1 and 10.M.0.2; a link with a radio and a wire counts twice.
    pub fn link(mut self, name: &str, ends: [&str; 2], spec: &str) -> Self {
        self.links.push(LinkPlan {
            name: name.to_owned(),
            ends: ends.map(str::to_owned),
            spec: spec.to_owned(),
        });
        self
    }

    /// Makes the network and its hosts.
    ///
    /// # Errors
    /// A link's text is none, or the links do not join all hosts with each other.
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
