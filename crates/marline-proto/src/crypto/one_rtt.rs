//! 1-RTT keys and their updates (RFC 9001, section 6).
//!
//! ```text
//!            previous ──────── current ──────── next
//!  receive   until 3 PTO       yes              prepared ahead of time
//!            after the update
//!  send      never             yes              from the update on
//! ```
//!
//! Each received packet is opened with the key that its key phase bit selects, and the next keys are derived while
//! sending, so that the time to process a packet does not reveal a key update (RFC 9001, sections 6.3 and 9.5). Those
//! of the first update are derived after ten packets: many connections end before that. If the peer updates its keys
//! sooner, they are derived when its packet arrives. The additional time reveals only that its key phase bit is 1.

use marline_wire::packet::bits;
use marline_wire::{ErrorCode, PathId, TransportError};
use rustls::quic::PacketKeySet;

use super::packet::{OpenError, Sealing, Unprotected, open, seal_with, unprotect};
use super::{DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, UpdateSecrets};
use crate::Instant;

/// Sealed packets before the keys of the first update are derived.
const PREPARE_AFTER: u64 = 10;

/// Both directions' 1-RTT keys of one connection, all paths together.
pub(crate) struct OneRttKeys {
    /// Number of key updates; its lowest bit is the key phase.
    generation: u64,
    local: DirectionalKeys,
    remote: DirectionalKeys,
    /// Absent until an update is likely, and between an update and the first packet sent after it: the peer may not
    /// update again before it received that one.
    next: Option<PacketKeySet>,
    previous: Option<Previous>,
    secrets: UpdateSecrets,
    handshake_confirmed: bool,
    /// Packets sealed with the current key.
    sealed: u64,
    /// Whether the peer acknowledged a packet sealed with the current key.
    acknowledged: bool,
    /// First packet sealed with the current key on each path, until one is acknowledged.
    first_sealed: Vec<FirstSealed>,
    /// Received packets that failed authentication, under all keys.
    forged: u64,
    confidentiality_limit: u64,
    /// Number of packets after which an update is attempted.
    update_after: u64,
    integrity_limit: u64,
}

/// The first packet on a path sealed with the current key.
struct FirstSealed {
    path_id: PathId,
    number: u64,
}

/// The receive key before the last update.
struct Previous {
    key: Box<dyn PacketKey>,
    boundaries: Vec<Boundary>,
    expiry: Option<Instant>,
}

/// Packet numbers between which the key phase changed on one path.
struct Boundary {
    path_id: PathId,
    /// Lowest number opened with the current key.
    first: u64,
    /// Highest number opened with the previous key.
    last_before: Option<u64>,
}

/// A 1-RTT packet to open, whose header protection is removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneRttPacket {
    /// Path of the packet number; 0 without multipath.
    pub(crate) path_id: PathId,
    /// Full packet number.
    pub(crate) number: u64,
    /// Largest number opened on the path so far.
    pub(crate) largest_received: Option<u64>,
    /// First byte, unprotected.
    pub(crate) first_byte: u8,
    /// Offset of the payload in the packet.
    pub(crate) payload_offset: usize,
}

impl OneRttPacket {
    #[inline]
    fn open<'a>(self, key: &dyn PacketKey, packet: &'a mut [u8]) -> Result<&'a [u8], OpenError> {
        open(key, self.path_id, self.number, packet, self.payload_offset)
    }
}

/// An opened 1-RTT packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenedOneRtt<'a> {
    /// Its payload of frames.
    pub(crate) payload: &'a [u8],
    /// Generation of the key that opened it.
    pub(crate) generation: u64,
    /// The key update that this packet starts, if any.
    pub(crate) change: Option<KeyChange>,
}

/// A key update detected in a received packet. After either kind the caller sets the expiry of the
/// previous key: [`OneRttKeys::expire_previous_at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyChange {
    /// The peer initiated an update; from now on this end sends with the new keys as well.
    UpdatedByPeer,
    /// The peer responded to the update that this end initiated.
    Followed,
}

/// The reason why keys may not be updated now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UpdateRefused {
    /// The handshake is not confirmed.
    #[error("the handshake is not confirmed")]
    NotConfirmed,
    /// No packet sealed with the current key is acknowledged.
    #[error("no packet of the current key phase is acknowledged")]
    NotAcknowledged,
    /// The peer may still keep its previous keys and lack the next ones.
    #[error("the last update was less than three probe timeouts ago")]
    TooSoon,
}

impl OneRttKeys {
    /// Starts with the first keys and secrets from TLS.
    pub(crate) fn new(keys: Keys, secrets: impl Into<UpdateSecrets>) -> Self {
        let Keys { local, remote } = keys;
        Self {
            generation: 0,
            next: None,
            previous: None,
            secrets: secrets.into(),
            handshake_confirmed: false,
            sealed: 0,
            acknowledged: false,
            first_sealed: Vec::new(),
            forged: 0,
            update_after: u64::MAX,
            confidentiality_limit: local.packet.confidentiality_limit(),
            integrity_limit: remote.packet.integrity_limit(),
            local,
            remote,
        }
    }

    /// Initiates an update after `packets` packets are sealed with one key, if the AEAD's limit does not
    /// require it sooner.
    pub(crate) fn update_after(&mut self, packets: u64) {
        self.update_after = self.update_after.min(packets.max(1));
    }

    /// Number of key updates.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The key that removes header protection; it is never updated.
    pub(crate) fn remote_header(&self) -> &dyn HeaderProtectionKey {
        &*self.remote.header
    }

    /// Permits this end to initiate updates (RFC 9001, section 6.1).
    pub(crate) fn on_handshake_confirmed(&mut self) {
        self.handshake_confirmed = true;
    }

    /// Removes the header protection of a packet whose number begins at `number_offset`.
    ///
    /// # Errors
    ///
    /// [`OpenError::TooShort`] if the packet holds no sample.
    #[inline]
    pub(crate) fn unprotect(
        &self,
        packet: &mut [u8],
        number_offset: usize,
    ) -> Result<Unprotected, OpenError> {
        unprotect(self.remote_header(), packet, number_offset)
    }

    /// Opens `packet`, whose header protection is removed.
    ///
    /// # Errors
    ///
    /// [`OpenError::Fatal`] with KEY_UPDATE_ERROR if older keys protect a later packet, with
    /// AEAD_LIMIT_REACHED after too many forged packets; on other errors the packet is dropped.
    #[inline]
    pub(crate) fn open<'a>(
        &mut self,
        incoming: OneRttPacket,
        packet: &'a mut [u8],
    ) -> Result<OpenedOneRtt<'a>, OpenError> {
        if (incoming.first_byte & bits::KEY_PHASE != 0) != self.key_phase() {
            return self.open_other_phase(incoming, packet);
        }
        let payload = incoming
            .open(&*self.remote.packet, packet)
            .map_err(|error| self.on_failure(error))?;
        let change = match &mut self.previous {
            None => None,
            Some(previous) => previous.on_current(incoming)?,
        };
        Ok(OpenedOneRtt {
            payload,
            generation: self.generation,
            change,
        })
    }

    /// Opens a packet whose key phase bit is not the current one: a reordered packet from before the last
    /// update, or the first of a new update.
    #[cold]
    fn open_other_phase<'a>(
        &mut self,
        incoming: OneRttPacket,
        packet: &'a mut [u8],
    ) -> Result<OpenedOneRtt<'a>, OpenError> {
        if self.generation == 0 {
            self.prepare();
        }
        let is_late = matches!(&self.previous, Some(previous) if previous.is_before(incoming));
        let (key, is_update) = match (&self.next, &self.previous) {
            (Some(next), _) if !is_late => (&*next.remote, true),
            (_, Some(previous)) => (&*previous.key, false),
            // Unreachable: while `next` is absent after the first update, `previous` is present.
            (_, None) => (&*self.remote.packet, false),
        };
        let payload = incoming
            .open(key, packet)
            .map_err(|error| self.on_failure(error))?;
        if !is_update {
            if let Some(previous) = &mut self.previous {
                previous.on_previous(incoming);
            }
            return Ok(OpenedOneRtt {
                payload,
                generation: self.generation.saturating_sub(1),
                change: None,
            });
        }
        self.update();
        if let Some(previous) = &mut self.previous {
            previous.on_current(incoming)?;
        }
        Ok(OpenedOneRtt {
            payload,
            generation: self.generation,
            change: Some(KeyChange::UpdatedByPeer),
        })
    }

    /// Returns the key phase bit of the next packet to be sent. Initiates an update if the current key
    /// has sealed many packets, and derives the next keys if they are absent and may be needed.
    ///
    /// # Errors
    ///
    /// AEAD_LIMIT_REACHED if the key may seal no more packets and an update is not possible.
    #[inline]
    pub(crate) fn next_key_phase(&mut self) -> Result<bool, TransportError> {
        if self.next.is_none() && (self.generation > 0 || self.sealed >= PREPARE_AFTER) {
            self.prepare();
        }
        // The other half is reserved for periods in which an update is not possible.
        if self.sealed >= self.update_after.min(self.confidentiality_limit / 2)
            && self.initiate_update().is_err()
            && self.sealed >= self.confidentiality_limit
        {
            return Err(TransportError::new(
                ErrorCode::AEAD_LIMIT_REACHED,
                "the AEAD limit of the key is reached, and it cannot be updated",
            ));
        }
        Ok(self.key_phase())
    }

    /// Seals the packet that ends `buf`, as [`super::seal`] does. Its key phase bit is the one that
    /// [`next_key_phase`](Self::next_key_phase) returned for it.
    #[inline]
    pub(crate) fn seal(&mut self, packet: Sealing, buf: &mut Vec<u8>) {
        seal_with(&*self.local.packet, &*self.local.header, packet, buf);
        self.sealed += 1;
        if !self.acknowledged
            && !self
                .first_sealed
                .iter()
                .any(|first| first.path_id == packet.path_id)
        {
            self.first_sealed.push(FirstSealed {
                path_id: packet.path_id,
                number: packet.number,
            });
        }
    }

    /// Handles an acknowledgment of packet `largest` of path `path_id`, in a packet that the keys
    /// of `generation` opened.
    ///
    /// # Errors
    ///
    /// KEY_UPDATE_ERROR if the peer received an update but did not respond to it (RFC 9001, section 6.2).
    pub(crate) fn on_acked(
        &mut self,
        path_id: PathId,
        largest: u64,
        generation: u64,
    ) -> Result<(), TransportError> {
        let is_current = |first: &FirstSealed| first.path_id == path_id && first.number <= largest;
        if self.acknowledged || !self.first_sealed.iter().any(is_current) {
            return Ok(());
        }
        if generation < self.generation {
            return Err(TransportError::new(
                ErrorCode::KEY_UPDATE_ERROR,
                "a packet under old keys acknowledges one under new keys",
            ));
        }
        self.acknowledged = true;
        self.first_sealed = Vec::new();
        Ok(())
    }

    /// Updates the keys. All later packets are sealed with the next ones.
    ///
    /// # Errors
    ///
    /// [`UpdateRefused`] while the peer may not be able to respond.
    pub(crate) fn initiate_update(&mut self) -> Result<(), UpdateRefused> {
        if !self.handshake_confirmed {
            return Err(UpdateRefused::NotConfirmed);
        }
        if !self.acknowledged {
            return Err(UpdateRefused::NotAcknowledged);
        }
        if self.previous.is_some() {
            return Err(UpdateRefused::TooSoon);
        }
        self.prepare();
        self.update();
        self.prepare();
        Ok(())
    }

    /// Keeps the previous receive key until `expiry`: three probe timeouts of the slowest path
    /// after the first packet under the new one (RFC 9001, section 6.5).
    pub(crate) fn expire_previous_at(&mut self, expiry: Instant) {
        if let Some(previous) = &mut self.previous {
            previous.expiry = Some(expiry);
        }
    }

    /// Expiry of the previous receive key.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.previous.as_ref()?.expiry
    }

    /// Drops the previous receive key if it has expired.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|expiry| expiry <= now) {
            self.previous = None;
            self.prepare();
        }
    }

    /// Drops the state of `path`, which is no longer used.
    pub(crate) fn forget_path(&mut self, path: PathId) {
        self.first_sealed.retain(|first| first.path_id != path);
        if let Some(previous) = &mut self.previous {
            previous.boundaries.retain(|known| known.path_id != path);
        }
    }

    fn key_phase(&self) -> bool {
        self.generation & 1 == 1
    }

    fn on_failure(&mut self, error: OpenError) -> OpenError {
        self.forged += u64::from(error == OpenError::Unauthentic);
        if self.forged <= self.integrity_limit {
            return error;
        }
        OpenError::Fatal(TransportError::new(
            ErrorCode::AEAD_LIMIT_REACHED,
            "too many packets failed authentication",
        ))
    }

    fn prepare(&mut self) {
        if self.next.is_none() {
            self.next = Some(self.secrets.next_packet_keys());
        }
    }

    fn update(&mut self) {
        let Some(next) = self.next.take() else {
            return;
        };
        self.previous = Some(Previous {
            key: std::mem::replace(&mut self.remote.packet, next.remote),
            boundaries: Vec::new(),
            expiry: None,
        });
        self.local.packet = next.local;
        self.generation += 1;
        self.sealed = 0;
        self.acknowledged = false;
        self.first_sealed.clear();
    }
}

impl Previous {
    /// Whether `packet` precedes all packets on its path that the current key opened.
    fn is_before(&self, packet: OneRttPacket) -> bool {
        !self
            .boundaries
            .iter()
            .any(|boundary| boundary.path_id == packet.path_id && boundary.first <= packet.number)
    }

    /// Records that the current key opened `packet`.
    fn on_current(&mut self, packet: OneRttPacket) -> Result<Option<KeyChange>, OpenError> {
        let change = self.boundaries.is_empty().then_some(KeyChange::Followed);
        let on_path = |boundary: &&mut Boundary| boundary.path_id == packet.path_id;
        let last_before = if let Some(boundary) = self.boundaries.iter_mut().find(on_path) {
            boundary.first = boundary.first.min(packet.number);
            boundary.last_before
        } else {
            self.boundaries.push(Boundary {
                path_id: packet.path_id,
                first: packet.number,
                last_before: packet.largest_received,
            });
            packet.largest_received
        };
        if last_before.is_some_and(|last| packet.number < last) {
            return Err(OpenError::Fatal(TransportError::new(
                ErrorCode::KEY_UPDATE_ERROR,
                "older keys protect a packet with a higher number",
            )));
        }
        Ok(change)
    }

    /// Records that the previous key opened `packet`.
    fn on_previous(&mut self, packet: OneRttPacket) {
        for boundary in &mut self.boundaries {
            if boundary.path_id == packet.path_id {
                boundary.last_before = boundary.last_before.max(Some(packet.number));
            }
        }
    }
}

impl std::fmt::Debug for OneRttKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneRttKeys")
            .field("generation", &self.generation)
            .field("sealed", &self.sealed)
            .field("forged", &self.forged)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
