//! The paths of a connection, and their addressing by the other modules.

use std::net::SocketAddr;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use marline_wire::{ConnectionId, PathId};

use super::path::{Path, Stage};
use crate::time::Instant;

/// The index of a path in its connection's list. It is valid until a path is added or forgotten, so
/// never longer than the call that looked it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(usize);

impl Slot {
    /// The path of the handshake, during the handshake.
    pub(crate) const FIRST: Self = Self(0);
}

/// The existing paths, by ascending ID; never empty.
#[derive(Debug)]
pub(crate) struct PathList {
    list: Vec<Path>,
    main: Slot,
}

impl PathList {
    pub(crate) fn new(first: Path) -> Self {
        Self {
            list: vec![first],
            main: Slot::FIRST,
        }
    }

    /// Whether there is only one path.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        self.list.len() == 1
    }

    pub(crate) fn by_id(&self, id: PathId) -> Option<Slot> {
        self.list.iter().position(|path| path.id == id).map(Slot)
    }

    /// The path of packets to `destination`.
    pub(crate) fn by_destination(&self, destination: &ConnectionId) -> Option<Slot> {
        let is_active = |path: &Path| path.active_local_cid == *destination;
        let active = self.list.iter().position(is_active);
        let knows = |path: &Path| path.local_cids.contains(destination);
        active
            .or_else(|| self.list.iter().position(knows))
            .map(Slot)
    }

    /// Adds a path; returns its slot.
    pub(super) fn insert(&mut self, path: Path) -> Slot {
        let position = self.list.partition_point(|other| other.id < path.id);
        self.list.insert(position, path);
        if position <= self.main.0 {
            self.main.0 += 1;
        }
        Slot(position)
    }

    /// Removes the matching paths, but never the last one.
    pub(super) fn remove_where(&mut self, mut matches: impl FnMut(&Path) -> bool) -> Vec<Path> {
        let main = self.main().id;
        let mut left = self.list.len();
        let is_gone = |path: &mut Path| {
            let is_gone = left > 1 && matches(path);
            left -= usize::from(is_gone);
            is_gone
        };
        let gone = self.list.extract_if(.., is_gone).collect();
        self.main = self.by_id(main).unwrap_or(Slot::FIRST);
        self.find_main();
        gone
    }

    /// Updates the main path after a path was opened, abandoned or removed. It stays the same as long as it is
    /// open: state kept for it ends with it.
    pub(super) fn find_main(&mut self) {
        if !self.main().is_open()
            && let Some(oldest) = self.list.iter().position(Path::is_open)
        {
            self.main = Slot(oldest);
        }
    }

    /// The slot of the main path, which represents the connection: that of the handshake, and whenever it is
    /// abandoned the oldest open one.
    pub(crate) const fn main_slot(&self) -> Slot {
        self.main
    }

    /// The main path, which represents the connection.
    pub(crate) fn main(&self) -> &Path {
        &self[self.main]
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.list.len()).map(Slot)
    }

    /// The best path, for data of the connection as a whole.
    pub(crate) fn best(&self) -> Slot {
        if self.is_single() {
            return Slot::FIRST;
        }
        let best = self.slots().min_by_key(|&at| self[at].rank());
        best.unwrap_or(Slot::FIRST)
    }

    /// The path that carries acknowledgments of packets received on `of`: `of` itself, unless it does not
    /// answer and another path does.
    pub(crate) fn ack_carrier(&self, of: Slot) -> Slot {
        if self.is_single() || self[of].is_live() {
            return of;
        }
        let best = self.best();
        if !self[of].is_open() || self[best].is_live() {
            best
        } else {
            of
        }
    }

    /// The other open paths between the addresses of an open path.
    pub(crate) fn beside(&self, at: Slot) -> impl Iterator<Item = Slot> + '_ {
        self.slots()
            .filter(move |&other| self.are_beside(at, other))
    }

    /// The paths whose local address satisfies `is_it`, except abandoned ones.
    pub(crate) fn at_local(
        &self,
        is_it: impl Fn(SocketAddr) -> bool,
    ) -> impl Iterator<Item = Slot> {
        self.slots().filter(move |&at| {
            !self[at].is_abandoned() && is_it(self[at].tuples.active.addresses.local)
        })
    }

    /// Whether both are open paths between the same addresses.
    fn are_beside(&self, one: Slot, other: Slot) -> bool {
        let (one_path, other_path) = (&self[one], &self[other]);
        one != other
            && one_path.is_open()
            && other_path.is_open()
            && one_path.tuples.active.addresses == other_path.tuples.active.addresses
    }

    /// The live paths except this one.
    pub(super) fn others_live(&self, at: Slot) -> impl Iterator<Item = Slot> + '_ {
        let others = self.slots().filter(move |&other| other != at);
        others.filter(|&other| self[other].is_live())
    }

    /// Whether another path is open.
    pub(crate) fn has_other_open(&self, at: Slot) -> bool {
        let mut others = self.slots().filter(|&other| other != at);
        others.any(|other| self[other].is_open())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.list.iter_mut()
    }

    /// Whether any path has packets to or from `remote`.
    pub(crate) fn knows_remote(&mut self, remote: SocketAddr) -> bool {
        let mut tuples = self.list.iter_mut().flat_map(|path| path.tuples.all());
        tuples.any(|known| known.addresses.remote == remote)
    }

    /// The longest round-trip time of the open paths.
    pub(crate) fn longest_rtt(&self) -> Duration {
        self.iter()
            .filter(|path| path.is_open())
            .map(|path| path.recovery.rtt().smoothed())
            .max()
            .unwrap_or_default()
    }

    /// The longest probe timeout of the open paths, without backoff.
    pub(crate) fn longest_pto(&self, max_ack_delay: Duration) -> Duration {
        self.iter()
            .filter(|path| path.is_open())
            .map(|path| path.recovery.pto(max_ack_delay))
            .max()
            .unwrap_or_default()
    }

    /// Whether this path searches for a larger datagram size: the first path of a 4-tuple does, unless it is
    /// suspected.
    pub(crate) fn searches_mtu(&self, at: Slot) -> bool {
        self.is_single() || self[at].is_live() && self.beside(at).all(|other| other > at)
    }

    /// Applies a change of a path's datagram size to the other paths between its addresses.
    pub(crate) fn share_mtu(&mut self, at: Slot) {
        if self.is_single() {
            return;
        }
        let size = self[at].tuples.active.mtu.current();
        for other in self.slots() {
            let differs = self[other].tuples.active.mtu.current() != size;
            if differs && self.are_beside(at, other) {
                let found = self[at].tuples.active.mtu.clone();
                let path = &mut self[other];
                path.tuples.active.mtu.adopt(&found);
                path.recovery.on_mtu(path.tuples.active.mtu.current());
            }
        }
    }

    /// Time at which the next abandoned path is forgotten.
    pub(super) fn next_forgetting(&self) -> Option<Instant> {
        let until = |path: &Path| match path.stage {
            Stage::Abandoned { until } => until,
            Stage::Opening | Stage::Open => None,
        };
        self.iter().filter_map(until).min()
    }
}

impl Index<Slot> for PathList {
    type Output = Path;

    #[inline]
    fn index(&self, slot: Slot) -> &Path {
        &self.list[slot.0]
    }
}

impl IndexMut<Slot> for PathList {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Path {
        &mut self.list[slot.0]
    }
}
