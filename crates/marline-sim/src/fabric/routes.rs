//! Routes from every node to every address.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;

use marline_link::Station;

use super::{MediumId, Node};

/// A node's interface to a medium.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) medium: MediumId,
    pub(super) station: Station,
    /// Address of the interface, at hosts.
    pub(super) address: Option<IpAddr>,
}

/// The interfaces of all nodes.
pub(super) struct Layout {
    /// Whether the node is a host, by node.
    pub(super) is_host: Vec<bool>,
    /// Interfaces by node.
    pub(super) interfaces: Vec<Vec<Interface>>,
    /// Nodes by medium and station.
    pub(super) members: Vec<Vec<Node>>,
    /// Sorted addresses with their hosts.
    pub(super) addresses: Vec<(IpAddr, Node)>,
}

/// One hop of a route: over `medium`, from one station to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) medium: MediumId,
    pub(super) from: Station,
    pub(super) to: Station,
}

/// The equal-cost next hops from every node to every address.
///
/// An address is reached over its medium, by a route with the fewest hops. If there is no route over that medium, an
/// address is reached over any interface of its host.
#[derive(Default)]
pub(super) struct Routes {
    hops: Vec<Hop>,
    /// Ranges in `hops` by exit and address.
    ranges: Vec<Range<usize>>,
    /// Numbers of hops by exit and address.
    lengths: Vec<u32>,
    /// First exit by node. A router has one exit, a host one for each of its interfaces.
    first_exit: Vec<usize>,
    addresses: usize,
}

impl Routes {
    /// Next hops from `node`, or from one interface of a host, to the `address`th address.
    pub(super) fn next(&self, node: Node, interface: usize, address: usize) -> &[Hop] {
        &self.hops[self.ranges[self.index(node, interface, address)].clone()]
    }

    /// The interface among these of a host with the shortest route to the `address`th address; the first of equal ones.
    pub(super) fn nearest(
        &self,
        node: Node,
        interfaces: impl Iterator<Item = usize>,
        address: usize,
    ) -> Option<usize> {
        interfaces
            .filter(|&interface| !self.next(node, interface, address).is_empty())
            .min_by_key(|&interface| self.lengths[self.index(node, interface, address)])
    }

    fn index(&self, node: Node, interface: usize, address: usize) -> usize {
        (self.first_exit[node.index()] + interface) * self.addresses + address
    }
}

impl Layout {
    /// Index of `address` among the addresses.
    pub(super) fn find(&self, address: IpAddr) -> Option<usize> {
        self.addresses
            .binary_search_by_key(&address, |&(known, _)| known)
            .ok()
    }

    pub(super) fn routes(&self) -> Routes {
        let targets: Vec<[Distances; 2]> = self
            .addresses
            .iter()
            .map(|&(address, host)| {
                let own = &self.interfaces[host.index()];
                let there = own.iter().filter(|i| i.address == Some(address));
                [
                    self.distances(host, there),
                    self.distances(host, own.iter()),
                ]
            })
            .collect();
        let mut routes = Routes {
            addresses: targets.len(),
            ..Routes::default()
        };
        // A route over another medium than that of the address counts as longer than all routes that use it.
        let detour = u32::try_from(self.members.len()).unwrap_or(u32::MAX / 2);
        let mut exits = 0;
        for (node, interfaces) in (0..).map(Node).zip(&self.interfaces) {
            routes.first_exit.push(exits);
            let sets: Vec<&[Interface]> = if self.is_host[node.index()] {
                interfaces.chunks(1).collect()
            } else {
                vec![interfaces]
            };
            exits += sets.len();
            for exit in sets {
                for target in &targets {
                    let start = routes.hops.len();
                    let length = target.iter().zip([0, detour]).find_map(|(to, more)| {
                        Some(self.append_hops(node, exit, to, &mut routes.hops)? + more)
                    });
                    routes.ranges.push(start..routes.hops.len());
                    routes.lengths.push(length.unwrap_or(u32::MAX));
                }
            }
        }
        routes
    }

    /// Pairs of hosts without a route from the first to the second.
    pub(super) fn unreachable(&self, routes: &Routes) -> impl Iterator<Item = [Node; 2]> {
        let hosts = || (0..).map(Node).zip(&self.is_host).filter(|&(_, &is)| is);
        let pairs = hosts().flat_map(move |(a, _)| hosts().map(move |(b, _)| [a, b]));
        pairs.filter(move |&[a, b]| {
            let mut there = (0..)
                .zip(&self.addresses)
                .filter(|&(_, &(_, host))| host == b);
            let own = self.interfaces[a.index()].len();
            let is_reached = |address| routes.nearest(a, 0..own, address).is_some();
            a != b && !there.any(|(address, _)| is_reached(address))
        })
    }

    /// The distances of all media from `host`, which is entered by one of `goals`.
    fn distances<'a>(&self, host: Node, goals: impl Iterator<Item = &'a Interface>) -> Distances {
        let mut distances = Distances {
            host,
            goals: Vec::new(),
            media: vec![u32::MAX; self.members.len()],
            routers: vec![u32::MAX; self.is_host.len()],
        };
        let mut queue = VecDeque::new();
        for goal in goals {
            distances.goals.push((goal.medium, goal.station));
            distances.media[goal.medium.index()] = 1;
            queue.push_back(goal.medium);
        }
        while let Some(medium) = queue.pop_front() {
            let length = distances.media[medium.index()];
            for &node in &self.members[medium.index()] {
                let known = &mut distances.routers[node.index()];
                if self.is_host[node.index()] || *known != u32::MAX {
                    continue;
                }
                *known = length;
                for next in &self.interfaces[node.index()] {
                    let known = &mut distances.media[next.medium.index()];
                    if *known == u32::MAX {
                        *known = length + 1;
                        queue.push_back(next.medium);
                    }
                }
            }
        }
        distances
    }

    /// Appends the first hops of all shortest routes that leave `node` by one of `interfaces`; returns
    /// their length.
    fn append_hops(
        &self,
        node: Node,
        interfaces: &[Interface],
        to: &Distances,
        hops: &mut Vec<Hop>,
    ) -> Option<u32> {
        if node == to.host {
            return None;
        }
        let length = |interface: &Interface| to.media[interface.medium.index()];
        let shortest = interfaces.iter().map(length).min()?;
        if shortest == u32::MAX {
            return None;
        }
        for interface in interfaces.iter().filter(|&i| length(i) == shortest) {
            let medium = interface.medium;
            let mut push = |to| {
                hops.push(Hop {
                    medium,
                    from: interface.station,
                    to,
                });
            };
            if let Some(&(_, station)) = to.goals.iter().find(|goal| goal.0 == medium) {
                push(station);
                continue;
            }
            for (station, member) in self.members[medium.index()].iter().enumerate() {
                // The distance of a router is that of its nearest medium.
                if *member != node && to.routers[member.index()] == shortest - 1 {
                    push(station);
                }
            }
        }
        Some(shortest)
    }
}

/// The distances to one host.
struct Distances {
    host: Node,
    /// The host's stations on the media by which it may be entered.
    goals: Vec<(MediumId, Station)>,
    /// Hops by medium, including the one over it.
    media: Vec<u32>,
    /// Hops by node, for routers.
    routers: Vec<u32>,
}
