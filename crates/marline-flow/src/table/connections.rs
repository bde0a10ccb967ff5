//! QUIC connections by the IDs that their servers chose: a packet that a client sends from another address has one of them
//! (RFC 9000, section 9).

use std::collections::HashMap;

use ahash::RandomState;
use marline_wire::ConnectionId;

use super::flow::{Directed, FlowKey};
use super::paths::Path;
use crate::decode::Transport;
use crate::inspect::{QuicIds, other};

/// The shortest ID that identifies a connection: fewer bytes may occur in other packets by chance.
const SHORTEST: usize = 4;

/// The longest ID (RFC 9000, section 17.2).
const LONGEST: usize = 20;

/// An ID of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Id {
    server: u128,
    port: u16,
    path: Path,
    id: ConnectionId,
}

impl Id {
    fn of(key: &FlowKey, server: usize, id: ConnectionId) -> Self {
        let endpoint = key.endpoint(server);
        Self {
            server: endpoint.bits(),
            port: endpoint.port(),
            path: key.path(),
            id,
        }
    }
}

/// The slots of connections.
#[derive(Default)]
pub(super) struct Connections {
    slots: HashMap<Id, u32, RandomState>,
    /// The number of IDs of each length.
    lengths: [u32; LONGEST + 1],
}

impl Connections {
    pub(super) fn insert(&mut self, key: &FlowKey, ids: &QuicIds, slot: u32) {
        for id in ids.server() {
            if id.len() < SHORTEST {
                continue;
            }
            let id = Id::of(key, other(ids.client), id);
            if self.slots.insert(id, slot).is_none() {
                self.lengths[id.id.len()] += 1;
            }
        }
    }

    /// Removes the IDs of a connection, unless they now belong to another one.
    pub(super) fn remove(&mut self, key: &FlowKey, ids: &QuicIds, slot: u32) {
        for id in ids.server() {
            let id = Id::of(key, other(ids.client), id);
            if self.slots.get(&id) == Some(&slot) {
                self.slots.remove(&id);
                self.lengths[id.id.len()] -= 1;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.lengths.iter().all(|number| *number == 0)
    }

    /// The connection of a 1-RTT packet.
    pub(super) fn find(&self, directed: &Directed, payload: &[u8]) -> Option<u32> {
        const LONG_FORM: u8 = 0x80;
        let (first, rest) = payload.split_first()?;
        if self.slots.is_empty()
            || directed.key.transport() != Transport::Udp
            || first & LONG_FORM != 0
        {
            return None;
        }
        (SHORTEST..=LONGEST)
            .rev()
            .filter(|length| self.lengths[*length] > 0)
            .find_map(|length| {
                let id = ConnectionId::new(rest.get(..length)?)?;
                let id = Id::of(&directed.key, other(directed.sender), id);
                self.slots.get(&id).copied()
            })
    }
}
