//! The paths of a connection, and how the rest of it names them.

use std::ops::{Index, IndexMut};
use std::time::Duration;

use super::path::Path;

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

    /// The path that speaks for the connection: the oldest that is open.
    pub(super) const fn main(&self) -> Slot {
        self.main
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.list.len()).map(Slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.list.iter_mut()
    }

    /// The longest probe timeout, without backoff.
    pub(super) fn longest_pto(&self, max_ack_delay: Duration) -> Duration {
        self.iter()
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
