//! The description of a network and its validation.

use std::net::{IpAddr, Ipv4Addr};

use marline_link::spec::{Radio, RadioPart};
use marline_link::{Medium, Station};

use super::network::{Fabric, MediumParts};
use super::routes::{Interface, Layout};
use super::{MediumId, Node};

/// The nodes of a network and the media that join them.
pub struct Plan<B> {
    nodes: Vec<NodePlan>,
    media: Vec<MediumPlan>,
    carriers: Vec<Box<dyn Medium<B>>>,
}

struct NodePlan {
    name: String,
    is_host: bool,
}

struct MediumPlan {
    name: String,
    /// Index of the carrier of its packets.
    carrier: usize,
    /// The carrier's station for each station.
    stations: Vec<Station>,
    /// Nodes by station.
    members: Vec<Node>,
    /// Addresses set by the caller, by station.
    chosen: Vec<Option<IpAddr>>,
}

/// A link between two stations of a medium that several links share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// Name of the link.
    pub name: String,
    /// Nodes that it joins.
    pub ends: [Node; 2],
}

/// The reason why a plan is not a valid network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two nodes, or two media, have the same name.
    #[error("the name \"{0}\" is used twice")]
    DuplicateName(String),
    /// A medium joins more or fewer nodes than it has stations.
    #[error("\"{medium}\" joins {stations} nodes, not {nodes}")]
    Stations {
        /// The medium.
        medium: String,
        /// Number of stations.
        stations: usize,
        /// Number of given nodes.
        nodes: usize,
    },
    /// A medium joins a node to itself.
    #[error("\"{medium}\" joins \"{node}\" with itself")]
    JoinedTwice {
        /// The medium.
        medium: String,
        /// The node.
        node: String,
    },
    /// Two links of one medium join the same nodes.
    #[error("\"{0}\" and \"{1}\" share a medium and join the same nodes")]
    SameEnds(String, String),
    /// A node of another plan, or a node that the medium does not join.
    #[error("\"{medium}\" does not join node {}", .node.index())]
    UnknownNode {
        /// The medium.
        medium: String,
        /// The node.
        node: Node,
    },
    /// Two interfaces have the same address.
    #[error("the address {0} is used twice")]
    DuplicateAddress(IpAddr),
    /// There are not enough addresses for so many media or stations.
    #[error("\"{0}\" exceeds the number of media, or has too many stations")]
    TooLarge(String),
    /// A host has no link.
    #[error("host \"{0}\" has no link")]
    HostWithoutLink(String),
    /// There is no route from one host to another.
    #[error("no route from \"{from}\" to \"{to}\"")]
    NoRoute {
        /// The first host.
        from: String,
        /// The other host.
        to: String,
    },
}

impl<B> Plan<B> {
    /// A plan without nodes.
    pub const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            media: Vec::new(),
            carriers: Vec::new(),
        }
    }

    /// Adds a host, which has addresses, sends and receives, but does not forward.
    pub fn host(&mut self, name: impl Into<String>) -> Node {
        self.node(name.into(), true)
    }

    /// Adds a router, which forwards.
    pub fn router(&mut self, name: impl Into<String>) -> Node {
        self.node(name.into(), false)
    }

    fn node(&mut self, name: String, is_host: bool) -> Node {
        self.nodes.push(NodePlan { name, is_host });
        Node(u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX))
    }

    /// Joins `nodes` by `medium`; the first is its station 0. The host at station S of the Mth medium
    /// joined (from 1) gets the address 10.M.0.S+1.
    ///
    /// # Errors
    /// If the number of stations differs, a node is named twice or is not of this plan, or there
    /// are too many media (65,535) or stations (254) for the addresses.
    pub fn join(
        &mut self,
        name: impl Into<String>,
        medium: Box<dyn Medium<B>>,
        nodes: &[Node],
    ) -> Result<MediumId, PlanError> {
        let name = name.into();
        if medium.stations() != nodes.len() {
            return Err(PlanError::Stations {
                medium: name,
                stations: medium.stations(),
                nodes: nodes.len(),
            });
        }
        self.carriers.push(medium);
        self.add(name, (0..nodes.len()).collect(), nodes)
    }

    /// Joins pairs of nodes by links that share `medium`, as those of a radio channel do; `stations` are the nodes
    /// at its stations. Only nodes that a link joins are neighbors: others are reached over routers. Addresses are
    /// given as if each link were joined alone, in their order.
    ///
    /// # Errors
    /// As [`join`](Self::join); also if two links join the same nodes, or one joins a node without a station.
    pub fn join_shared(
        &mut self,
        medium: Box<dyn Medium<B>>,
        stations: &[Node],
        links: Vec<SharedLink>,
    ) -> Result<(), PlanError> {
        if let Some(first) = links
            .first()
            .filter(|_| medium.stations() != stations.len())
        {
            return Err(PlanError::Stations {
                medium: first.name.clone(),
                stations: medium.stations(),
                nodes: stations.len(),
            });
        }
        let first = self.media.len();
        self.carriers.push(medium);
        for SharedLink { name, ends } in links {
            let mut own = Vec::new();
            for node in ends {
                match stations.iter().position(|&station| station == node) {
                    Some(station) => own.push(station),
                    None => return Err(PlanError::UnknownNode { medium: name, node }),
                }
            }
            let is_same = |other: &&MediumPlan| ends.iter().all(|end| other.members.contains(end));
            if let Some(other) = self.media[first..].iter().find(is_same) {
                return Err(PlanError::SameEnds(other.name.clone(), name));
            }
            self.add(name, own, &ends)?;
        }
        Ok(())
    }

    /// Adds a medium on the last carrier, at whose `stations` these nodes are.
    fn add(
        &mut self,
        name: String,
        stations: Vec<Station>,
        nodes: &[Node],
    ) -> Result<MediumId, PlanError> {
        if let Some(&node) = nodes.iter().find(|node| node.index() >= self.nodes.len()) {
            return Err(PlanError::UnknownNode { medium: name, node });
        }
        if let Some((_, node)) = (1..)
            .zip(nodes)
            .find(|&(i, node)| nodes[i..].contains(node))
        {
            return Err(PlanError::JoinedTwice {
                medium: name,
                node: self.nodes[node.index()].name.clone(),
            });
        }
        if self.media.len() >= usize::from(u16::MAX) || nodes.len() > 254 {
            return Err(PlanError::TooLarge(name));
        }
        self.media.push(MediumPlan {
            name,
            carrier: self.carriers.len() - 1,
            stations,
            members: nodes.to_vec(),
            chosen: vec![None; nodes.len()],
        });
        Ok(MediumId(
            u32::try_from(self.media.len() - 1).unwrap_or(u32::MAX),
        ))
    }

    /// Joins two nodes by the media of one link, as [`LinkSpec::build`](marline_link::LinkSpec::build) makes
    /// them: the first node is the end with the `radio`. A radio and the wire behind it become two media,
    /// `NAME radio` and `NAME wire`, and a router between them: the access point or the base station. A cable before the
    /// radio is `NAME cable`; several channels are `NAME radio 1` and so on.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_link(
        &mut self,
        name: &str,
        radio: &Radio,
        media: Vec<Box<dyn Medium<B>>>,
        ends: [Node; 2],
    ) -> Result<(), PlanError> {
        let between = match radio {
            Radio::Wifi(_) => "access point",
            Radio::Lte(_) | Radio::None => "base station",
        };
        let last = media.len().saturating_sub(1);
        let parts = radio.parts();
        let [mut from, far] = ends;
        for (part, medium) in media.into_iter().enumerate() {
            let number = match parts.get(part) {
                Some(RadioPart::Channel(Some(number))) => format!(" {number}"),
                _ => String::new(),
            };
            let medium_name = match parts.get(part) {
                _ if last == 0 => name.to_owned(),
                Some(RadioPart::Cable) => format!("{name} cable"),
                Some(RadioPart::Channel(_)) => format!("{name} radio{number}"),
                None => format!("{name} wire"),
            };
            let to = match parts.get(part) {
                _ if part == last => far,
                Some(RadioPart::Cable) => self.router(format!("station of {name}")),
                _ => self.router(format!("{between}{number} of {name}")),
            };
            self.join(medium_name, medium, &[from, to])?;
            from = to;
        }
        Ok(())
    }

    /// Sets the address of `node` on `medium`, instead of the default one.
    ///
    /// # Errors
    /// The medium does not join the node.
    pub fn set_address(
        &mut self,
        medium: MediumId,
        node: Node,
        address: IpAddr,
    ) -> Result<(), PlanError> {
        let unknown = |medium| PlanError::UnknownNode { medium, node };
        let plan = self
            .media
            .get_mut(medium.index())
            .ok_or_else(|| unknown(String::new()))?;
        let station = plan
            .members
            .iter()
            .position(|&member| member == node)
            .ok_or_else(|| unknown(plan.name.clone()))?;
        plan.chosen[station] = Some(address);
        Ok(())
    }

    /// Makes the network: assigns addresses, finds routes.
    ///
    /// # Errors
    /// A name or an address is given twice, a host has no link, or there is no route from one host to
    /// another.
    pub fn build(self) -> Result<Fabric<B>, PlanError> {
        unique(self.nodes.iter().map(|node| &node.name))?;
        unique(self.media.iter().map(|medium| &medium.name))?;
        let layout = self.layout()?;
        let node_names: Vec<String> = self.nodes.into_iter().map(|node| node.name).collect();
        let routes = layout.routes();
        if let Some([from, to]) = layout.unreachable(&routes).next() {
            return Err(PlanError::NoRoute {
                from: node_names[from.index()].clone(),
                to: node_names[to.index()].clone(),
            });
        }
        let media = self.media.into_iter().map(|plan| MediumParts {
            name: plan.name,
            carrier: plan.carrier,
            stations: plan.stations,
        });
        Ok(Fabric::new(
            node_names,
            media.collect(),
            self.carriers,
            layout,
            routes,
        ))
    }

    /// The interfaces of the nodes and their addresses.
    fn layout(&self) -> Result<Layout, PlanError> {
        let mut interfaces: Vec<Vec<Interface>> = self.nodes.iter().map(|_| Vec::new()).collect();
        let mut addresses: Vec<(IpAddr, Node)> = Vec::new();
        for ((index, medium), id) in self.media.iter().enumerate().zip(0..) {
            for (station, (&node, chosen)) in medium.members.iter().zip(&medium.chosen).enumerate()
            {
                let is_host = self.nodes[node.index()].is_host;
                let address =
                    is_host.then(|| chosen.unwrap_or_else(|| default_address(index, station)));
                interfaces[node.index()].push(Interface {
                    medium: MediumId(id),
                    station,
                    address,
                });
                addresses.extend(address.map(|address| (address, node)));
            }
        }
        addresses.sort_unstable();
        if let Some(pair) = addresses.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(PlanError::DuplicateAddress(pair[0].0));
        }
        let alone = |(node, own): &(&NodePlan, &Vec<_>)| node.is_host && own.is_empty();
        if let Some((node, _)) = self.nodes.iter().zip(&interfaces).find(alone) {
            return Err(PlanError::HostWithoutLink(node.name.clone()));
        }
        Ok(Layout {
            is_host: self.nodes.iter().map(|node| node.is_host).collect(),
            interfaces,
            members: self.media.iter().map(|m| m.members.clone()).collect(),
            addresses,
        })
    }
}

impl<B> Default for Plan<B> {
    fn default() -> Self {
        Self::new()
    }
}

/// The default address at `station` of the medium with index `medium`.
fn default_address(medium: usize, station: Station) -> IpAddr {
    let number = u32::try_from(medium + 1).unwrap_or(u32::MAX);
    let host = u32::try_from(station + 1).unwrap_or(u32::MAX);
    let [.., high, low] = number.to_be_bytes();
    let [.., host] = host.to_be_bytes();
    Ipv4Addr::new(10, low, high, host).into()
}

fn unique<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), PlanError> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(PlanError::DuplicateName(pair[0].clone())),
        None => Ok(()),
    }
}
