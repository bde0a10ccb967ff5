//! Paths that may be opened, with the connection IDs that both ends have issued for them
//! (draft-ietf-quic-multipath-21, section 3.2).

use marline_wire::frame::NewConnectionId;
use marline_wire::{ConnectionId, PathId, TransportError};

use super::{LocalCids, Preference, RemoteCids};

/// A path that is not open.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) id: PathId,
    pub(crate) local: LocalCids,
    /// `None` until the peer issues one.
    pub(crate) remote: Option<RemoteCids>,
    pub(crate) preference: Preference,
}

impl Reserved {
    /// Whether both ends have an ID of the other, and the peer is known to have ours.
    pub(crate) fn is_ready(&self) -> bool {
        self.remote.is_some() && self.local.is_known()
    }

    /// Handles an ID that the peer issued for the path.
    ///
    /// # Errors
    ///
    /// As [`RemoteCids::on_new_connection_id`].
    pub(crate) fn on_new_connection_id(
        &mut self,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        match &mut self.remote {
            Some(remote) => remote.on_new_connection_id(frame),
            None => {
                self.remote = Some(RemoteCids::reserved(frame));
                Ok(())
            }
        }
    }
}

/// The paths that are neither open nor used up, by ascending ID, up to our limit.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    list: Vec<Reserved>,
    /// The next path ID to add; `None` after the last one.
    next: Option<PathId>,
}

impl Reserve {
    /// Starts after the path that is open already.
    pub(crate) const fn new() -> Self {
        Self {
            list: Vec::new(),
            next: Some(PathId(1)),
        }
    }

    /// Adds all paths up to `last`.
    pub(crate) fn extend(&mut self, last: PathId) {
        while let Some(id) = self.next.filter(|&next| next <= last) {
            self.list.push(Reserved {
                id,
                local: LocalCids::reserved(),
                remote: None,
                preference: Preference::default(),
            });
            self.next = id.0.checked_add(1).map(PathId);
        }
    }

    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut Reserved> {
        self.list.iter_mut().find(|path| path.id == id)
    }

    /// Removes a path that is opened, or will never be.
    pub(crate) fn take(&mut self, id: PathId) -> Option<Reserved> {
        let position = self.list.iter().position(|path| path.id == id)?;
        Some(self.list.remove(position))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Reserved> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Reserved> {
        self.list.iter_mut()
    }

    /// The paths up to `theirs`, the peer's limit.
    pub(crate) fn up_to(&mut self, theirs: PathId) -> impl Iterator<Item = &mut Reserved> {
        self.list.iter_mut().filter(move |path| path.id <= theirs)
    }

    /// The path of packets to `destination`.
    pub(crate) fn by_destination(&self, destination: &ConnectionId) -> Option<PathId> {
        self.list
            .iter()
            .find(|path| path.local.contains(destination))
            .map(|path| path.id)
    }

    /// Whether the peer has issued an ID for a path.
    pub(crate) fn is_usable(&self, id: PathId) -> bool {
        let mut paths = self.list.iter();
        paths.any(|path| path.id == id && path.remote.is_some())
    }

    /// Whether frames about the IDs of paths up to `theirs` are due.
    pub(crate) fn has_frames(&self, theirs: PathId) -> bool {
        let mut paths = self.list.iter().filter(|path| path.id <= theirs);
        paths.any(|path| {
            path.local.has_frames() || path.remote.as_ref().is_some_and(RemoteCids::has_frames)
        })
    }
}

#[cfg(test)]
mod tests;
