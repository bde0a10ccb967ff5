//! The layers around the packets of flows, with a number for each combination.

use std::collections::HashMap;

use ahash::RandomState;

use crate::decode::{Layer, Layers};
use crate::limits::MAX_LAYERS;

/// The number of the layers around a packet: 0 if there are none. It is the same for both directions, unless the identifiers of
/// tunnels differ.
pub(crate) type Path = u32;

/// Packets without layers around them.
pub(crate) const PLAIN: Path = 0;

struct Entry {
    layers: Box<[Layer]>,
    /// The part common to both directions; the same path, if that is everything.
    shared: Path,
    users: u32,
}

/// The paths of the active flows. Unused ones are removed, so that there are no more than flows.
#[derive(Default)]
pub(crate) struct Paths {
    numbers: HashMap<Box<[Layer]>, Path, RandomState>,
    /// The first one is the entry of path 1.
    entries: Vec<Option<Entry>>,
    free: Vec<Path>,
    /// The path of the previous packet, which is often that of the next one, too.
    recent: Option<Recent>,
}

struct Recent {
    /// Of a length that is never exceeded, so that alternating tunnels do not allocate memory for each packet.
    layers: Vec<Layer>,
    path: Path,
}

impl Paths {
    /// The path of a packet, if an active flow has it.
    #[inline(always)]
    pub(crate) fn find(&mut self, layers: &Layers) -> Option<Path> {
        match layers.is_empty() {
            true => Some(PLAIN),
            false => self.find_layers(layers),
        }
    }

    fn find_layers(&mut self, layers: &Layers) -> Option<Path> {
        if let Some(recent) = &self.recent
            && recent.layers == layers.get()
        {
            return Some(recent.path);
        }
        let path = *self.numbers.get(canonical(layers).get())?;
        let recent = self.recent.get_or_insert_with(|| Recent {
            layers: Vec::with_capacity(MAX_LAYERS),
            path,
        });
        recent.path = path;
        recent.layers.clear();
        recent.layers.extend_from_slice(layers.get());
        Some(path)
    }

    /// The path of a packet. A flow must [use](Self::acquire) it before the next call.
    pub(crate) fn number(&mut self, layers: &Layers) -> Path {
        if let Some(path) = self.find(layers) {
            return path;
        }
        let both = layers.both_ways();
        match layers.has_one_way_ids() {
            true => {
                let shared = self.insert(both.get(), None);
                self.acquire(shared);
                self.insert(canonical(layers).get(), Some(shared))
            }
            false => self.insert(both.get(), None),
        }
    }

    fn insert(&mut self, layers: &[Layer], shared: Option<Path>) -> Path {
        if let Some(path) = self.numbers.get(layers) {
            return *path;
        }
        let path = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as Path
        });
        self.entries[path as usize - 1] = Some(Entry {
            layers: layers.into(),
            shared: shared.unwrap_or(path),
            users: 0,
        });
        self.numbers.insert(layers.into(), path);
        path
    }

    fn entry(&self, path: Path) -> Option<&Entry> {
        self.entries.get((path as usize).checked_sub(1)?)?.as_ref()
    }

    /// The layers of a path, outermost first.
    pub(crate) fn layers(&self, path: Path) -> &[Layer] {
        self.entry(path).map_or(&[], |entry| &entry.layers)
    }

    /// The part that the other direction of a path shares with it; `None` if it is the same path.
    pub(crate) fn shared(&self, path: Path) -> Option<Path> {
        let shared = self.entry(path)?.shared;
        (shared != path).then_some(shared)
    }

    /// A flow uses a path.
    #[inline(always)]
    pub(crate) fn acquire(&mut self, path: Path) {
        if let Some(index) = (path as usize).checked_sub(1)
            && let Some(Some(entry)) = self.entries.get_mut(index)
        {
            entry.users += 1;
        }
    }

    /// A flow no longer uses a path.
    #[inline(always)]
    pub(crate) fn release(&mut self, path: Path) {
        if let Some(index) = (path as usize).checked_sub(1) {
            self.release_entry(index);
        }
    }

    fn release_entry(&mut self, index: usize) {
        let Some(Some(entry)) = self.entries.get_mut(index) else {
            return;
        };
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        let (path, shared) = (index as Path + 1, entry.shared);
        self.numbers.remove(&entry.layers);
        self.entries[index] = None;
        self.free.push(path);
        self.recent = None;
        if shared != path {
            self.release(shared);
        }
    }

    /// The number of paths.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}

/// The layers in a form common to both directions, or unchanged if there is none.
fn canonical(layers: &Layers) -> Layers {
    match layers.has_one_way_ids() {
        true => layers.clone(),
        false => layers.both_ways(),
    }
}
