//! Fragmented packets of IP: only their first fragment has ports, or the header of a tunnel.

use std::collections::{HashMap, VecDeque};

use ahash::RandomState;

use crate::decode::FragmentKey;
use crate::limits::{FRAGMENT_TIMEOUT_NS, MAX_FRAGMENTED};
use crate::table::{Directed, Path};

/// The fields of a packet's first fragment.
#[derive(Clone, Copy)]
pub(crate) enum First {
    /// A segment of a flow, to which the later fragments belong, too.
    Of(Directed),
    /// A tunnel whose inner packet counts.
    Tunnel,
}

/// A fragmented packet, and the layers around it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fragmented {
    pub(crate) key: FragmentKey,
    /// `None` for the carrier of a tunnel.
    pub(crate) path: Option<Path>,
}

/// The flows of later fragments that may still come.
pub(crate) struct Fragments {
    packets: HashMap<Fragmented, Expected, RandomState>,
    order: VecDeque<Fragmented>,
}

#[derive(Clone, Copy)]
struct Expected {
    first: First,
    since_ns: u64,
}

impl Fragments {
    pub(crate) fn new() -> Self {
        Self {
            packets: HashMap::with_hasher(RandomState::new()),
            order: VecDeque::new(),
        }
    }

    /// Notes the first fragment of a packet.
    pub(crate) fn expect(&mut self, packet: Fragmented, first: First, since_ns: u64) {
        let expected = Expected { first, since_ns };
        if self.packets.insert(packet, expected).is_none() {
            self.order.push_back(packet);
        }
        if self.order.len() > MAX_FRAGMENTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.packets.remove(&oldest);
        }
    }

    /// The fields of a packet's first fragment, if it came before.
    pub(crate) fn find(&self, packet: &Fragmented, now_ns: u64) -> Option<First> {
        let expected = self.packets.get(packet)?;
        let is_late = now_ns.saturating_sub(expected.since_ns) > FRAGMENT_TIMEOUT_NS;
        (!is_late).then_some(expected.first)
    }
}
