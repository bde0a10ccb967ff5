//! The dependency tree of streams and its turns (HBES, Algorithm 1).

use std::collections::VecDeque;

use marline_wire::StreamId;
use rustc_hash::FxHashMap;
use slab::Slab;

use super::super::ring::Ring;
use super::{FirstTurn, Priority, WrrConfig};
use crate::limits::{IDLE_TREE_STREAMS, TREE_DEPTH};

/// Streams below a root, which is not a stream.
///
/// The parent of a stream does not change. A stream can only depend on earlier streams, so there are no cycles.
#[derive(Debug)]
pub(super) struct Tree {
    config: WrrConfig,
    nodes: Slab<Node>,
    root: usize,
    ids: FxHashMap<StreamId, usize>,
    /// Streams with nothing to send and no children, oldest first.
    leftover: Ring,
    leftovers: usize,
    established: u64,
}

#[derive(Debug)]
struct Node {
    id: StreamId,
    parent: usize,
    depth: u8,
    /// Position in the order of first activation.
    place: u64,
    weight: u16,
    state: State,
    /// Opportunities left in this round.
    tokens: u32,
    /// Index among the streams that may be removed.
    seat: Option<usize>,
    /// Streams that depend on it, by position.
    children: VecDeque<usize>,
    /// Children that can send and have tokens, by position.
    turns: VecDeque<usize>,
    /// Number of children that can send.
    ready: usize,
    /// Position at which the search for the next child starts.
    next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The stream has data to send.
    Active,
    /// The stream has no data to send for now.
    Idle,
    /// The stream has sent all of its data.
    Finished,
}

impl Tree {
    pub(super) fn new(config: WrrConfig) -> Self {
        let mut nodes = Slab::new();
        let root = nodes.insert(Node::new(StreamId::from(0), 0, 0, 0));
        nodes[root].state = State::Finished;
        Self {
            config,
            nodes,
            root,
            ids: FxHashMap::default(),
            leftover: Ring::default(),
            leftovers: 0,
            established: 0,
        }
    }

    pub(super) fn activate(&mut self, id: StreamId, priority: Priority) {
        let key = match self.ids.get(&id) {
            Some(key) => *key,
            None => self.establish(id, &priority),
        };
        self.nodes[key].weight = priority.weight();
        self.keep(key);
        self.set_state(key, State::Active);
    }

    pub(super) fn pause(&mut self, id: StreamId) {
        if let Some(key) = self.ids.get(&id).copied()
            && self.nodes[key].state == State::Active
        {
            self.set_state(key, State::Idle);
            self.release(key);
        }
    }

    pub(super) fn finish(&mut self, id: StreamId) {
        if let Some(key) = self.ids.get(&id).copied() {
            self.set_state(key, State::Finished);
            self.release(key);
        }
    }

    pub(super) fn set_weight(&mut self, id: StreamId, weight: u16) {
        if let Some(key) = self.ids.get(&id) {
            self.nodes[*key].weight = weight;
        }
    }

    pub(super) fn pick(&self) -> Option<StreamId> {
        let mut key = self.root;
        loop {
            key = self.in_turn(key)?;
            let node = &self.nodes[key];
            if node.state == State::Active {
                return Some(node.id);
            }
        }
    }

    /// Appends streams in turn order, until `out` has `most` entries.
    pub(super) fn order(&self, most: usize, out: &mut Vec<StreamId>) {
        self.visit(self.root, most, out);
    }

    /// Records that a stream used an opportunity, which also counts for all its ancestors, because they passed it on.
    pub(super) fn spend(&mut self, id: StreamId) {
        let Some(mut key) = self.ids.get(&id).copied() else {
            return;
        };
        if self.nodes[key].state != State::Active {
            return;
        }
        while key != self.root {
            let parent = self.nodes[key].parent;
            if self.is_ready(key) {
                if self.nodes[parent].turns.is_empty() {
                    self.begin_round(parent);
                }
                self.spend_one(key);
            }
            key = parent;
        }
    }

    fn spend_one(&mut self, key: usize) {
        let Node {
            parent,
            place,
            tokens,
            ..
        } = self.nodes[key];
        let Some(left) = tokens.checked_sub(1) else {
            return;
        };
        self.nodes[key].tokens = left;
        self.nodes[parent].next = place;
        if left == 0 {
            self.nodes[parent].next = place + 1;
            self.leave_turns(key);
        }
    }

    /// The child of `key` whose turn it is.
    fn in_turn(&self, key: usize) -> Option<usize> {
        let node = &self.nodes[key];
        if node.ready == 0 {
            return None;
        }
        if !node.turns.is_empty() {
            return self.circle(&node.turns, node.next).next();
        }
        // A round begins when a stream is served; then all children that can send get tokens.
        self.circle(&node.children, node.next)
            .find(|child| self.is_ready(*child))
    }

    fn visit(&self, key: usize, most: usize, out: &mut Vec<StreamId>) {
        let node = &self.nodes[key];
        if node.ready == 0 {
            return;
        }
        let now = self.circle(&node.turns, node.next);
        let later = self.circle(&node.children, node.next);
        let later = later.filter(|child| self.nodes[*child].tokens == 0 && self.is_ready(*child));
        for child in now.chain(later) {
            if out.len() >= most {
                return;
            }
            let node = &self.nodes[child];
            if node.state == State::Active {
                out.push(node.id);
            } else {
                self.visit(child, most, out);
            }
        }
    }

    /// All of `keys`, which are sorted by position, in cyclic order from `place`.
    fn circle<'a>(
        &'a self,
        keys: &'a VecDeque<usize>,
        place: u64,
    ) -> impl Iterator<Item = usize> + 'a {
        let start = keys.partition_point(|key| self.nodes[*key].place < place);
        keys.range(start..).chain(keys.range(..start)).copied()
    }

    /// Gives tokens to all children of `key` that can send; none of them has any left.
    fn begin_round(&mut self, key: usize) {
        // The lists are removed from the node while its children change.
        let children = std::mem::take(&mut self.nodes[key].children);
        let mut turns = std::mem::take(&mut self.nodes[key].turns);
        let heaviest = self.heaviest(&children);
        for child in children.iter().copied().filter(|key| self.is_ready(*key)) {
            turns.push_back(child);
        }
        for child in &turns {
            let node = &mut self.nodes[*child];
            node.tokens = self.config.tokens.of(node.weight, heaviest);
        }
        self.nodes[key].children = children;
        self.nodes[key].turns = turns;
    }

    /// The largest weight among the children that are not finished, or that pass turns on to a descendant.
    fn heaviest(&self, children: &VecDeque<usize>) -> u16 {
        let counts = |key: &&usize| {
            self.nodes[**key].state != State::Finished || self.nodes[**key].ready > 0
        };
        let weights = children.iter().filter(counts);
        weights
            .map(|key| self.nodes[*key].weight)
            .max()
            .unwrap_or(1)
    }

    /// Whether `key`, or a descendant to which it passes its turns, can send.
    fn is_ready(&self, key: usize) -> bool {
        let node = &self.nodes[key];
        match node.state {
            State::Active => true,
            State::Finished => node.ready > 0,
            State::Idle => node.ready > 0 && !self.config.strict_parent,
        }
    }

    fn set_state(&mut self, key: usize, state: State) {
        let before = self.is_ready(key);
        self.nodes[key].state = state;
        let after = self.is_ready(key);
        if before != after {
            self.propagate_ready(key, after);
        }
    }

    /// Updates the ancestors after `key` became ready or unready.
    fn propagate_ready(&mut self, mut key: usize, ready: bool) {
        while key != self.root {
            let parent = self.nodes[key].parent;
            let before = self.is_ready(parent);
            if ready {
                self.nodes[parent].ready += 1;
                self.join_turns(key);
            } else {
                self.nodes[parent].ready -= 1;
                self.leave_turns(key);
            }
            if self.is_ready(parent) == before {
                return;
            }
            key = parent;
        }
    }

    fn join_turns(&mut self, key: usize) {
        let Node {
            parent,
            place,
            tokens,
            ..
        } = self.nodes[key];
        if tokens == 0 {
            return;
        }
        let turns = &self.nodes[parent].turns;
        let at = turns.partition_point(|other| self.nodes[*other].place < place);
        self.nodes[parent].turns.insert(at, key);
    }

    fn leave_turns(&mut self, key: usize) {
        let Node { parent, place, .. } = self.nodes[key];
        let turns = &self.nodes[parent].turns;
        if let Ok(at) = turns.binary_search_by_key(&place, |other| self.nodes[*other].place) {
            self.nodes[parent].turns.remove(at);
        }
    }

    fn establish(&mut self, id: StreamId, priority: &Priority) -> usize {
        let parent = priority.parent().and_then(|parent| self.ids.get(&parent));
        let mut parent = parent.copied().unwrap_or(self.root);
        while self.nodes[parent].depth >= TREE_DEPTH {
            parent = self.nodes[parent].parent;
        }
        self.keep(parent);
        let depth = self.nodes[parent].depth + 1;
        self.established += 1;
        let node = Node::new(id, parent, depth, self.established);
        let key = self.nodes.insert(node);
        self.nodes[parent].children.push_back(key);
        self.ids.insert(id, key);
        self.nodes[key].tokens = self.first_tokens(parent, priority.weight());
        key
    }

    /// The tokens of a new child of `parent` in the present round.
    fn first_tokens(&self, parent: usize, weight: u16) -> u32 {
        let node = &self.nodes[parent];
        if self.config.first_turn == FirstTurn::Wait || node.turns.is_empty() {
            return 0;
        }
        let heaviest = self.heaviest(&node.children).max(weight);
        self.config.tokens.of(weight, heaviest)
    }

    /// Prevents removal of `key`.
    fn keep(&mut self, key: usize) {
        if let Some(seat) = self.nodes[key].seat.take() {
            self.leftover.remove(seat);
            self.leftovers -= 1;
        }
    }

    /// Permits removal of `key` if no stream depends on it; above the limit, removes the streams that have
    /// been removable longest.
    fn release(&mut self, key: usize) {
        self.leave(key);
        while self.leftovers > IDLE_TREE_STREAMS {
            let Some(key) = self.leftover.head().and_then(|id| self.ids.remove(&id)) else {
                return;
            };
            self.keep(key);
            let Node { parent, place, .. } = self.nodes[key];
            let siblings = &self.nodes[parent].children;
            if let Ok(at) = siblings.binary_search_by_key(&place, |other| self.nodes[*other].place)
            {
                self.nodes[parent].children.remove(at);
            }
            self.nodes.remove(key);
            self.leave(parent);
        }
    }

    fn leave(&mut self, key: usize) {
        let node = &self.nodes[key];
        let is_leaf = key != self.root && node.children.is_empty();
        if is_leaf && node.state != State::Active && node.seat.is_none() {
            self.nodes[key].seat = Some(self.leftover.push(node.id));
            self.leftovers += 1;
        }
    }

    /// Number of streams in the tree.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Depth of a stream; 1 is below the root.
    #[cfg(test)]
    pub(super) fn depth(&self, id: StreamId) -> Option<u8> {
        Some(self.nodes[*self.ids.get(&id)?].depth)
    }
}

impl Node {
    fn new(id: StreamId, parent: usize, depth: u8, place: u64) -> Self {
        Self {
            id,
            parent,
            depth,
            place,
            weight: 1,
            state: State::Idle,
            tokens: 0,
            seat: None,
            children: VecDeque::new(),
            turns: VecDeque::new(),
            ready: 0,
            next: 0,
        }
    }
}
