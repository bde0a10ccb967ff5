//! The packet number spaces of the handshake.

use crate::level::SpaceId;
use crate::spaces::Space;
use crate::token::Token;

/// The Initial and Handshake spaces until they are discarded; boxed to free their memory.
#[derive(Debug, Default)]
pub(super) struct HandshakeSpaces {
    initial: Option<Box<Space<Token>>>,
    handshake: Option<Box<Space<Token>>>,
}

impl HandshakeSpaces {
    pub(super) fn new() -> Self {
        Self {
            initial: Some(Box::new(Space::new())),
            handshake: Some(Box::new(Space::new())),
        }
    }

    /// Whether both spaces are discarded.
    pub(super) fn is_empty(&self) -> bool {
        self.initial.is_none() && self.handshake.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SpaceId, &Space<Token>)> {
        [SpaceId::Initial, SpaceId::Handshake]
            .into_iter()
            .filter_map(|id| Some((id, self.get(id)?)))
    }

    pub(super) fn get(&self, id: SpaceId) -> Option<&Space<Token>> {
        match id {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Data => None,
        }
    }

    pub(super) fn get_mut(&mut self, id: SpaceId) -> Option<&mut Space<Token>> {
        match id {
            SpaceId::Initial => self.initial.as_deref_mut(),
            SpaceId::Handshake => self.handshake.as_deref_mut(),
            SpaceId::Data => None,
        }
    }

    /// Restarts the Initial space, and returns the previous one.
    pub(super) fn restart_initial(&mut self) -> Option<Box<Space<Token>>> {
        self.initial.replace(Box::new(Space::new()))
    }

    pub(super) fn take(&mut self, id: SpaceId) -> Option<Box<Space<Token>>> {
        match id {
            SpaceId::Initial => self.initial.take(),
            SpaceId::Handshake => self.handshake.take(),
            SpaceId::Data => None,
        }
    }
}
