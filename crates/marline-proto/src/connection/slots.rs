//! The paths of a connection, and how the rest of it names them.

use std::ops::{Index, IndexMut};
use std::time::Duration;

use marline_wire::{ConnectionId, PathId};

use super::path::{Path, Stage};

/// Where a path stands among those of its connection. It holds until a path is added or forgotten, so
/// never longer than the call that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(usize);

impl Slot {
    /// The path of the handshake, as long as it lasts.
    pub(super) const FIRST: Self = Self(0);
}

/// The paths that exist, by ascending ID; never none.
#[derive(Debug)]
pub(super) struct Paths {
    list: Vec<Path>,
    /// The first that is open.
    main: Slot,
}

impl Paths {
    pub(super) fn new(first: Path) -> Self {
        Self {
            list: vec![first],
            main: Slot::FIRST,
        }
    }

    /// Whether there is nothing to choose.
    #[inline]
    pub(super) fn is_single(&self) -> bool {
        self.list.len() == 1
    }

    pub(super) fn by_id(&self, id: PathId) -> Option<Slot> {
        self.list.iter().position(|path| path.id == id).map(Slot)
    }

    /// The path that packets to `destination` belong to.
    pub(super) fn by_destination(&self, destination: &ConnectionId) -> Option<Slot> {
        let is_active = |path: &Path| path.active_local_cid == *destination;
        let active = self.list.iter().position(is_active);
        let knows = |path: &Path| path.local_cids.contains(destination);
        active
            .or_else(|| self.list.iter().position(knows))
            .map(Slot)
    }

    /// Adds a path; returns where it stands.
    pub(super) fn insert(&mut self, path: Path) -> Slot {
        let position = self.list.partition_point(|other| other.id < path.id);
        self.list.insert(position, path);
        self.find_main();
        Slot(position)
    }

    /// Removes the paths that match, but for the last one.
    pub(super) fn remove_where(&mut self, mut matches: impl FnMut(&Path) -> bool) -> Vec<Path> {
        let mut left = self.list.len();
        let is_gone = |path: &mut Path| {
            let is_gone = left > 1 && matches(path);
            left -= usize::from(is_gone);
            is_gone
        };
        let gone = self.list.extract_if(.., is_gone).collect();
        self.find_main();
        gone
    }

    /// A path was opened or abandoned.
    pub(super) fn find_main(&mut self) {
        let is_open = |path: &Path| path.stage == Stage::Open;
        self.main = Slot(self.list.iter().position(is_open).unwrap_or(0));
    }

    /// The path that speaks for the connection: the oldest that is open.
    pub(super) const fn main(&self) -> Slot {
        self.main
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.list.len()).map(Slot)
    }

    /// The other open paths between the addresses of one that is open.
    pub(super) fn beside(&self, at: Slot) -> impl Iterator<Item = Slot> + '_ {
        self.slots()
            .filter(move |&other| self.are_beside(at, other))
    }

    /// Whether these are two open paths between the same addresses.
    pub(super) fn are_beside(&self, one: Slot, other: Slot) -> bool {
        let (one_path, other_path) = (&self[one], &self[other]);
        one != other
            && one_path.stage == Stage::Open
            && other_path.stage == Stage::Open
            && one_path.tuples.active.addresses == other_path.tuples.active.addresses
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.list.iter_mut()
    }

    /// The longest round-trip time of those that are open.
    pub(super) fn longest_rtt(&self) -> Duration {
        self.iter()
            .filter(|path| path.stage == Stage::Open)
            .map(|path| path.recovery.rtt().smoothed())
            .max()
            .unwrap_or_default()
    }

    /// The longest probe timeout of those that are open, without backoff.
    pub(super) fn longest_pto(&self, max_ack_delay: Duration) -> Duration {
        self.iter()
            .filter(|path| path.stage == Stage::Open)
            .map(|path| path.recovery.pto(max_ack_delay))
            .max()
            .unwrap_or_default()
    }
}

impl Index<Slot> for Paths {
    type Output = Path;

    #[inline]
    fn index(&self, slot: Slot) -> &Path {
        &self.list[slot.0]
    }
}

impl IndexMut<Slot> for Paths {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Path {
        &mut self.list[slot.0]
    }
}
