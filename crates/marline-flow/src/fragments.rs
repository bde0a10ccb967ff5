//! Fragmented packets of IP: only their first fragment has ports.

use std::collections::{HashMap, VecDeque};

use ahash::RandomState;

use crate::decode::FragmentKey;
use crate::limits::{FRAGMENT_TIMEOUT_NS, MAX_FRAGMENTED};
use crate::table::Directed;

/// Of which flows the later fragments are that may still come.
pub(crate) struct Fragments {
    flows: HashMap<FragmentKey, Expected, RandomState>,
    order: VecDeque<FragmentKey>,
}

#[derive(Clone, Copy)]
struct Expected {
    of: Directed,
    since_ns: u64,
}

impl Fragments {
    pub(crate) fn new() -> Self {
        Self {
            flows: HashMap::with_hasher(RandomState::new()),
            order: VecDeque::new(),
        }
    }

    /// The first fragment of a packet came.
    pub(crate) fn expect(&mut self, key: FragmentKey, of: Directed, now_ns: u64) {
        let since_ns = now_ns;
        if self.flows.insert(key, Expected { of, since_ns }).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_FRAGMENTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.flows.remove(&oldest);
        }
    }

    /// The flow of a later fragment, if the first one came before.
    pub(crate) fn find(&self, key: &FragmentKey, now_ns: u64) -> Option<Directed> {
        let expected = self.flows.get(key)?;
        let is_late = now_ns.saturating_sub(expected.since_ns) > FRAGMENT_TIMEOUT_NS;
        (!is_late).then_some(expected.of)
    }
}
