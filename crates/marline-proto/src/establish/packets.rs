//! Packets on the way in and out: which may be opened, which wait for their keys, and their protection.

use marline_wire::packet::{self, Packet, ProtectedHeader, ProtectedKind};
use marline_wire::{PathId, Side};

use super::Establishment;
use crate::crypto::{self, KeyChange, OpenError, Sealing, Unprotected};
use crate::level::{EncryptionLevel, SpaceId};
use crate::limits::{MAX_UNDECRYPTABLE_PACKETS, MIN_DATAGRAM_SIZE};
use crate::observe::events::DropTrigger;
use crate::time::Instant;
use crate::tuple::Arrival;

/// A packet whose keys are not available yet (RFC 9001, section 5.7).
#[derive(Debug)]
pub(super) struct Undecryptable {
    arrival: Arrival,
    packet: Box<[u8]>,
}

/// A packet that has waited for its keys.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(crate) arrival: Arrival,
    pub(crate) header: ProtectedHeader,
    pub(crate) packet: Box<[u8]>,
}

/// The path of a packet, and the largest number received in its packet number space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketContext {
    pub(crate) path: PathId,
    pub(crate) largest: Option<u64>,
}

/// The result of removing the protection of a packet.
pub(crate) struct Unsealed<'a> {
    pub(crate) unprotected: Unprotected,
    pub(crate) number: u64,
    pub(crate) payload: &'a [u8],
    /// Generation of the 1-RTT keys; 0 at other levels.
    pub(crate) generation: u64,
    /// Whether the packet shows that the keys are updated.
    pub(crate) change: Option<KeyChange>,
}

impl Establishment {
    /// The reason to discard a packet without decryption: another version, or an Initial packet in a small datagram from
    /// a client (RFC 9000, section 14.1) or with a token from a server (section 17.2.2).
    pub(crate) fn refuse(
        &mut self,
        header: &ProtectedHeader,
        arrival: &Arrival,
        packet: &[u8],
    ) -> Option<DropTrigger> {
        if !self.accepts_version(header) {
            return Some(DropTrigger::Unsupported);
        }
        let is_invalid = matches!(header.kind, ProtectedKind::Initial { .. })
            && match self.side {
                Side::Server => arrival.datagram < usize::from(MIN_DATAGRAM_SIZE),
                Side::Client => !header.token(packet).is_empty(),
            };
        is_invalid.then_some(DropTrigger::Invalid)
    }

    /// Whether the keys of `level` exist and may open packets. A server opens 1-RTT packets only when the handshake
    /// is complete (RFC 9001, section 5.7).
    pub(crate) fn may_open(&self, level: EncryptionLevel) -> bool {
        let is_early =
            level == EncryptionLevel::OneRtt && self.side.is_server() && self.tls.is_handshaking();
        self.keys.has(level)
            && !is_early
            && (level != EncryptionLevel::ZeroRtt || self.side.is_server())
    }

    /// Whether the keys of `level` may still become available.
    fn may_open_later(&self, level: EncryptionLevel) -> bool {
        match level {
            EncryptionLevel::Initial => false,
            EncryptionLevel::ZeroRtt => self.side.is_server() && self.tls.is_handshaking(),
            EncryptionLevel::Handshake => self.keys.initial.is_some(),
            EncryptionLevel::OneRtt => self.tls.is_handshaking(),
        }
    }

    /// Keeps a packet until its keys are available; returns `false` if it must be dropped.
    pub(crate) fn defer(
        &mut self,
        now: Instant,
        arrival: Arrival,
        level: EncryptionLevel,
        packet: &[u8],
    ) -> bool {
        if !self.may_open_later(level) || self.undecryptable.len() >= MAX_UNDECRYPTABLE_PACKETS {
            return false;
        }
        self.undecryptable.push(Undecryptable {
            arrival,
            packet: packet.into(),
        });
        self.on_undecryptable(now);
        true
    }

    /// The next packet whose keys have become available.
    pub(crate) fn take_openable(&mut self) -> Option<Deferred> {
        let cid_len = self.progress.local_cid().len();
        let mut index = 0;
        while index < self.undecryptable.len() {
            let parsed = packet::parse(&self.undecryptable[index].packet, cid_len, true);
            let Ok(Packet::Protected(header)) = parsed else {
                self.undecryptable.remove(index);
                continue;
            };
            if self.may_open(header.kind.into()) {
                let Undecryptable { arrival, packet } = self.undecryptable.remove(index);
                return Some(Deferred {
                    arrival,
                    header,
                    packet,
                });
            }
            index += 1;
        }
        None
    }

    /// Removes header and packet protection in place (RFC 9001, section 5).
    pub(crate) fn unseal<'a>(
        &mut self,
        context: PacketContext,
        header: &ProtectedHeader,
        packet: &'a mut [u8],
    ) -> Result<Unsealed<'a>, OpenError> {
        let offset = header.number_offset;
        let number_of = |unprotected: &Unprotected| {
            packet::expand(
                context.largest,
                unprotected.truncated,
                unprotected.number_len,
            )
        };
        let keys = match EncryptionLevel::from(header.kind) {
            EncryptionLevel::OneRtt => {
                let keys = self.keys.one_rtt.as_mut().ok_or(OpenError::Unauthentic)?;
                let unprotected = keys.unprotect(packet, offset)?;
                let number = number_of(&unprotected);
                let incoming = crypto::OneRttPacket {
                    path_id: context.path,
                    number,
                    largest_received: context.largest,
                    first_byte: unprotected.first_byte,
                    payload_offset: offset + unprotected.number_len,
                };
                let opened = keys.open(incoming, packet)?;
                return Ok(Unsealed {
                    unprotected,
                    number,
                    payload: opened.payload,
                    generation: opened.generation,
                    change: opened.change,
                });
            }
            EncryptionLevel::Initial => {
                let is_current = header
                    .version
                    .is_none_or(|version| version == self.versions.format());
                let keys = match is_current {
                    true => &self.keys.initial,
                    false => &self.keys.other_initial,
                };
                keys.as_ref().map(|keys| &keys.remote)
            }
            EncryptionLevel::Handshake => self.keys.handshake.as_ref().map(|keys| &keys.remote),
            EncryptionLevel::ZeroRtt => self.keys.zero_rtt.as_deref(),
        };
        let keys = keys.ok_or(OpenError::Unauthentic)?;
        let unprotected = crypto::unprotect(&*keys.header, packet, offset)?;
        let number = number_of(&unprotected);
        let payload_offset = offset + unprotected.number_len;
        let payload = crypto::open(
            &*keys.packet,
            PathId::INITIAL,
            number,
            packet,
            payload_offset,
        )?;
        Ok(Unsealed {
            unprotected,
            number,
            payload,
            generation: 0,
            change: None,
        })
    }

    /// Handles the header of a packet that was authenticated.
    pub(crate) fn on_packet_opened(&mut self, header: &ProtectedHeader) {
        self.progress.on_packet_opened();
        self.retransmission.on_peer_heard();
        self.follow_version(header);
    }

    /// The level that protects packets of the space now; `None` without keys.
    pub(crate) fn sealing_level(&self, space: SpaceId) -> Option<EncryptionLevel> {
        let level = match space {
            SpaceId::Initial => EncryptionLevel::Initial,
            SpaceId::Handshake => EncryptionLevel::Handshake,
            SpaceId::Data if self.keys.one_rtt.is_none() && self.side.is_client() => {
                EncryptionLevel::ZeroRtt
            }
            SpaceId::Data => EncryptionLevel::OneRtt,
        };
        self.keys.has(level).then_some(level)
    }

    /// Protects the packet at the end of `buf`, in place.
    pub(crate) fn seal(&mut self, level: EncryptionLevel, sealing: Sealing, buf: &mut Vec<u8>) {
        let keys = match level {
            EncryptionLevel::OneRtt => {
                if let Some(keys) = self.one_rtt_mut() {
                    keys.seal(sealing, buf);
                }
                return;
            }
            EncryptionLevel::ZeroRtt => self.keys.zero_rtt.as_deref(),
            EncryptionLevel::Initial => self.keys.initial.as_ref().map(|keys| &keys.local),
            EncryptionLevel::Handshake => self.keys.handshake.as_ref().map(|keys| &keys.local),
        };
        if let Some(keys) = keys {
            crypto::seal(keys, sealing, buf);
        }
    }
}
