//! Eviction from a full table: a tree of networks, whose fullest branch loses a leaf.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use slab::Slab;

use crate::prefix::Prefix;

/// Prefix lengths of the networks that have a share each, the widest first: common sizes of a site.
/// Addresses share that of their network; a wider prefix has a share of its own.
const V4: &[u8] = &[24];
const V6: &[u8] = &[48, 64];

/// Leaves in a tree of the networks that contain them. Every operation is O(log n).
///
/// Times are increasing numbers, each used for one update.
#[derive(Debug)]
pub(super) struct Shares<L> {
    nodes: Slab<Node<L>>,
    branches: HashMap<Option<Prefix>, usize>,
}

/// The order in which siblings lose leaves: the greatest is the one with the most leaves, and of those with
/// equally many the one that was updated least recently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    leaves: usize,
    touched: Reverse<u64>,
}

/// A network at the top level of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) id: usize,
    /// Leaves in it.
    pub(super) leaves: usize,
}

#[derive(Debug)]
struct Node<L> {
    /// `None` for the root.
    parent: Option<usize>,
    /// Leaves below; 1 for a leaf.
    leaves: usize,
    /// When a leaf below was last updated, even if it has been removed since.
    touched: u64,
    /// Their IDs by rank.
    children: BTreeMap<Rank, usize>,
    place: Place<L>,
}

#[derive(Debug)]
enum Place<L> {
    Root,
    Branch(Option<Prefix>),
    Leaf(Box<L>),
}

impl<L> Node<L> {
    fn new(parent: Option<usize>, touched: u64, place: Place<L>) -> Self {
        Self {
            parent,
            leaves: 0,
            touched,
            children: BTreeMap::new(),
            place,
        }
    }

    fn rank(&self) -> Rank {
        Rank {
            leaves: self.leaves,
            touched: Reverse(self.touched),
        }
    }
}

/// The tree's root.
pub(super) const ALL: usize = 0;

impl<L> Shares<L> {
    pub(super) fn new() -> Self {
        let mut nodes = Slab::new();
        nodes.insert(Node::new(None, 0, Place::Root));
        Self {
            nodes,
            branches: HashMap::new(),
        }
    }

    /// The number of leaves.
    pub(super) fn len(&self) -> usize {
        self.nodes[ALL].leaves
    }

    pub(super) fn leaf(&self, id: usize) -> Option<&L> {
        match &self.nodes.get(id)?.place {
            Place::Leaf(leaf) => Some(leaf),
            Place::Root | Place::Branch(_) => None,
        }
    }

    pub(super) fn leaf_mut(&mut self, id: usize) -> Option<&mut L> {
        match &mut self.nodes.get_mut(id)?.place {
            Place::Leaf(leaf) => Some(leaf),
            Place::Root | Place::Branch(_) => None,
        }
    }

    /// Inserts a leaf below `network`; returns its ID.
    pub(super) fn insert(&mut self, network: Option<Prefix>, leaf: L, now: u64) -> usize {
        let mut parent = ALL;
        for branch in branches(network) {
            let nodes = &mut self.nodes;
            parent = *self.branches.entry(branch).or_insert_with(|| {
                nodes.insert(Node::new(Some(parent), now, Place::Branch(branch)))
            });
        }
        let leaf = Node::new(Some(parent), now, Place::Leaf(Box::new(leaf)));
        let id = self.nodes.insert(leaf);
        self.climb(id, 1, now);
        id
    }

    /// The leaf was updated.
    pub(super) fn touch(&mut self, id: usize, now: u64) {
        self.climb(id, 0, now);
    }

    /// Updates the nodes from `leaf` to the root, which gain `more` leaves.
    fn climb(&mut self, leaf: usize, more: usize, now: u64) {
        let mut id = leaf;
        while let Some(parent) = self.nodes[id].parent {
            let node = &mut self.nodes[id];
            let before = node.rank();
            node.leaves += more;
            node.touched = now;
            let after = node.rank();
            let siblings = &mut self.nodes[parent].children;
            siblings.remove(&before);
            siblings.insert(after, id);
            id = parent;
        }
        self.nodes[ALL].leaves += more;
    }

    /// Removes the leaf, and the branches that become empty.
    pub(super) fn remove(&mut self, id: usize) -> Option<L> {
        self.leaf(id)?;
        let mut taken = None;
        let mut at = id;
        while let Some(parent) = self.nodes[at].parent {
            let before = self.nodes[at].rank();
            self.nodes[parent].children.remove(&before);
            self.nodes[at].leaves -= 1;
            if self.nodes[at].leaves == 0 {
                match self.nodes.remove(at).place {
                    Place::Leaf(leaf) => taken = Some(*leaf),
                    Place::Branch(branch) => drop(self.branches.remove(&branch)),
                    Place::Root => {}
                }
            } else {
                let after = self.nodes[at].rank();
                self.nodes[parent].children.insert(after, at);
            }
            at = parent;
        }
        self.nodes[ALL].leaves -= 1;
        taken
    }

    /// The widest network that contains the leaf.
    pub(super) fn network(&self, leaf: usize) -> Network {
        let mut id = leaf;
        while let Some(parent) = self.nodes[id].parent.filter(|parent| *parent != ALL) {
            id = parent;
        }
        Network {
            id,
            leaves: self.nodes[id].leaves,
        }
    }

    /// The leaf to evict below `id`: that of the greatest [`Rank`] at each level.
    pub(super) fn fullest(&self, id: usize) -> usize {
        let mut at = id;
        while let Some((_, child)) = self.nodes[at].children.last_key_value() {
            at = *child;
        }
        at
    }
}

/// The branches from the root to `network`.
fn branches(network: Option<Prefix>) -> impl Iterator<Item = Option<Prefix>> {
    let wide = match network.map(|network| network.address()) {
        Some(IpAddr::V4(_)) => V4,
        Some(IpAddr::V6(_)) => V6,
        None => &[],
    };
    let wide = wide.iter().filter_map(move |bits| {
        let network = network.filter(|network| network.bits() > *bits)?;
        Some(Some(Prefix::new(network.address(), *bits)))
    });
    wide.chain(std::iter::once(network))
}
