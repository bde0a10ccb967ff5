//! Opens packets and records of connections between other hosts, with keys that anyone can derive or that a key
//! log contains. For capture analysis; connections do not use it.

use marline_wire::packet::{ProtectedHeader, ProtectedKind, number};
use marline_wire::{ConnectionId, PathId, Side, Version};
use rustls::CipherSuite;
use rustls::crypto::tls13::OkmBlock;

use super::provider::{RECORD_IV_LEN, RecordCipher};
use super::traffic::{SecretPair, TrafficSecrets, expand_label_into, hash_len, hkdf};
use super::{DirectionalKeys, Keys, TAG_LEN, initial_keys, open, unprotect};

/// The largest inner plaintext and its tag (RFC 8446, section 5.2): longer records are not TLS.
const MAX_RECORD: usize = (1 << 14) + 256;

/// The keys of both directions for the Initial or the Handshake packets of one QUIC connection.
pub struct PacketKeys {
    client: DirectionalKeys,
    server: DirectionalKeys,
}

/// A packet that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedPacket<'a> {
    /// Full packet number.
    pub number: u64,
    /// Payload of frames.
    pub payload: &'a [u8],
}

impl PacketKeys {
    /// The keys of Initial packets (RFC 9001, section 5.2). `dcid` is the destination ID of the client's first Initial
    /// packet, or of its first one after a Retry.
    pub fn initial(version: Version, dcid: &ConnectionId) -> Self {
        Self::of_client(initial_keys(version, dcid, Side::Client))
    }

    /// The keys of Handshake packets, from the two handshake traffic secrets of TLS. `cipher` is the number of the
    /// cipher suite (RFC 8446, appendix B.4). `None` if the cryptographic library does not support it, or the length of
    /// a secret is not that of its hash.
    pub fn handshake(version: Version, cipher: u16, client: &[u8], server: &[u8]) -> Option<Self> {
        let cipher = CipherSuite::from(cipher);
        let len = hash_len(cipher)?;
        if client.len() != len || server.len() != len {
            return None;
        }
        let secrets = SecretPair {
            client: OkmBlock::new(client),
            server: OkmBlock::new(server),
        };
        let secrets = TrafficSecrets::new(cipher, version, Side::Client, secrets)?;
        Some(Self::of_client(secrets.keys()))
    }

    fn of_client(keys: Keys) -> Self {
        Self {
            client: keys.local,
            server: keys.remote,
        }
    }

    /// Opens the packet of `sender` with this `header` in place. `largest` is the largest number of the packets of this
    /// kind that `sender` sent before, if any. `None` if the packet is of another space, is too short or was not sealed
    /// with these keys; its bytes are then undefined.
    pub fn open<'a>(
        &self,
        sender: Side,
        header: &ProtectedHeader,
        largest: Option<u64>,
        packet: &'a mut [u8],
    ) -> Option<OpenedPacket<'a>> {
        if header.kind == ProtectedKind::Short {
            return None;
        }
        let packet = packet.get_mut(..header.len)?;
        let keys = match sender {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        let fields = unprotect(&*keys.header, packet, header.number_offset).ok()?;
        let number = number::expand(largest, fields.truncated, fields.number_len);
        let payload_offset = header.number_offset + fields.number_len;
        let payload = open(
            &*keys.packet,
            PathId::INITIAL,
            number,
            packet,
            payload_offset,
        )
        .ok()?;
        Some(OpenedPacket { number, payload })
    }
}

impl std::fmt::Debug for PacketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PacketKeys")
    }
}

/// The key of TLS 1.3 records that one end sends under one traffic secret (RFC 8446, sections 5.2 and 7.3).
pub struct RecordKey {
    cipher: RecordCipher,
    iv: [u8; RECORD_IV_LEN],
    sequence: u64,
}

/// The content of a record that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedRecord<'a> {
    /// The content type (RFC 8446, appendix B.1): 22 is handshake.
    pub content_type: u8,
    /// The content.
    pub content: &'a [u8],
}

impl RecordKey {
    /// The key derived from a traffic secret. `cipher` is the number of the cipher suite. `None` if the
    /// cryptographic library does not support it, or the length of the secret is not that of its hash.
    pub fn new(cipher: u16, secret: &[u8]) -> Option<Self> {
        let suite = CipherSuite::from(cipher);
        if secret.len() != hash_len(suite)? {
            return None;
        }
        let expander = hkdf(suite)?.expander_for_okm(&OkmBlock::new(secret));
        let mut key = [0; 32];
        let key = key.get_mut(..RecordCipher::key_len(suite)?)?;
        expand_label_into(&*expander, b"key", key).ok()?;
        let mut iv = [0; RECORD_IV_LEN];
        expand_label_into(&*expander, b"iv", &mut iv).ok()?;
        Some(Self {
            cipher: RecordCipher::new(suite, key)?,
            iv,
            sequence: 0,
        })
    }

    /// Opens the next record in place; `header` is its five bytes, `fragment` the bytes after them. `None` if it was
    /// not sealed as the next record with this key; its bytes are then undefined.
    pub fn open_next<'a>(
        &mut self,
        header: [u8; 5],
        fragment: &'a mut [u8],
    ) -> Option<OpenedRecord<'a>> {
        if !(TAG_LEN..=MAX_RECORD).contains(&fragment.len()) {
            return None;
        }
        let mut nonce = self.iv;
        let (_, number) = nonce.split_at_mut(RECORD_IV_LEN - 8);
        for (byte, sequence) in number.iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= sequence;
        }
        let plain = self.cipher.open(nonce, &header, fragment)?;
        self.sequence += 1;
        let end = plain.iter().rposition(|byte| *byte != 0)?;
        Some(OpenedRecord {
            content_type: plain[end],
            content: &plain[..end],
        })
    }
}

impl std::fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordKey")
    }
}

#[cfg(test)]
mod tests;
