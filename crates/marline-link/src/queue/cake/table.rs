//! Set-associative hash tables.

/// Queues in a set.
const WAYS: usize = 8;

/// A place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) index: usize,
}

/// The place of `tag` in a table whose places have these tags, or of the set that its hash selects, starting with the place
/// that a direct table would take: where the tag is, else the first that `is_free`, else the direct one.
pub(super) fn find_way(tags: &[u64], tag: u64, is_free: impl Fn(usize) -> bool) -> Way {
    let direct = usize::try_from(tag % tags.len() as u64).unwrap_or(0);
    let set = direct - direct % WAYS;
    let ways = || (0..WAYS).map(|way| set + (direct + way) % WAYS);
    let known = ways().find(|way| tags[*way] == tag && !is_free(*way));
    let index = known
        .or_else(|| ways().find(|way| is_free(*way)))
        .unwrap_or(direct);
    Way { index }
}

/// Hosts, and how many of their flows fill their queues.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    tags: Vec<u64>,
    busy: Vec<u32>,
}

impl Hosts {
    pub(super) fn new(places: usize) -> Self {
        Self {
            tags: vec![0; places],
            busy: vec![0; places],
        }
    }

    /// The place of the host with this hash.
    pub(super) fn find(&mut self, hash: u64) -> usize {
        let Way { index } = find_way(&self.tags, hash, |place| self.busy[place] == 0);
        self.tags[index] = hash;
        index
    }

    /// The number of its flows that fill their queues.
    pub(super) fn busy(&self, host: usize) -> u32 {
        self.busy[host]
    }

    pub(super) fn add(&mut self, host: usize) {
        self.busy[host] += 1;
    }

    pub(super) fn remove(&mut self, host: usize) {
        self.busy[host] = self.busy[host].saturating_sub(1);
    }
}
