//! Records of TLS in a stream (RFC 8446, section 5.1).

use marline_proto::inspect::RecordKey;

const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

const HEADER: usize = 5;

/// The largest content of a record with its expansion, before TLS 1.3 (RFC 5246, section 6.2.3).
const MAX_FRAGMENT: usize = (1 << 14) + 2048;

/// A record, as far as its bytes are known.
struct Record<'a> {
    header: [u8; HEADER],
    fragment: &'a [u8],
    is_whole: bool,
}

impl<'a> Record<'a> {
    /// Takes the next record of a stream; `None` if its header is incomplete or invalid.
    fn next(stream: &mut &'a [u8]) -> Option<Self> {
        let (header, rest) = stream.split_first_chunk::<HEADER>()?;
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[1] != 3 || length > MAX_FRAGMENT {
            return None;
        }
        let (fragment, rest) = rest.split_at(length.min(rest.len()));
        *stream = rest;
        Some(Self {
            header: *header,
            fragment,
            is_whole: fragment.len() == length,
        })
    }
}

/// The first bytes of records of handshakes.
pub(super) const HANDSHAKE_STARTS: [[u8; 2]; 2] = [[HANDSHAKE, 3], [CHANGE_CIPHER_SPEC, 3]];

/// The records at the beginning of a stream.
pub(super) struct Plain<'a> {
    /// The messages in its handshake records, of which those after a ChangeCipherSpec may be encrypted.
    pub(super) messages: Vec<u8>,
    /// The number of their bytes before the first ChangeCipherSpec, if any.
    change: Option<usize>,
    /// The stream from its first record of application data, if it has one: in TLS 1.3, from its first encrypted record.
    pub(super) encrypted: Option<&'a [u8]>,
    /// Whether more records may follow when more bytes arrive.
    pub(super) continues: bool,
}

impl<'a> Plain<'a> {
    pub(super) fn of(mut stream: &'a [u8]) -> Self {
        let mut plain = Self {
            messages: Vec::new(),
            change: None,
            encrypted: None,
            continues: true,
        };
        loop {
            let before = stream;
            let Some(record) = Record::next(&mut stream) else {
                plain.continues = before.len() < HEADER;
                return plain;
            };
            match record.header[0] {
                HANDSHAKE => plain.messages.extend_from_slice(record.fragment),
                CHANGE_CIPHER_SPEC => {
                    plain.change.get_or_insert(plain.messages.len());
                }
                APPLICATION_DATA => {
                    plain.encrypted = Some(before);
                    return plain;
                }
                _ => {
                    plain.continues = false;
                    return plain;
                }
            }
        }
    }

    /// The messages that are not encrypted, up to TLS 1.2.
    pub(super) fn before_change(&self) -> &[u8] {
        &self.messages[..self.change.unwrap_or(self.messages.len())]
    }

    /// Whether the sender's Finished follows its ChangeCipherSpec, up to TLS 1.2 (RFC 5246, section 7.4.9).
    pub(super) fn is_finished(&self) -> bool {
        self.change
            .is_some_and(|before| self.messages.len() > before)
    }
}

/// The messages in encrypted records.
pub(super) struct Opened {
    pub(super) messages: Vec<u8>,
    /// Whether more can be decrypted when more bytes arrive.
    pub(super) continues: bool,
}

/// Decrypts the complete records of a stream, with the key of the first of them. Records before that one, which only a
/// client has, are early data (RFC 8446, section 4.2.10).
pub(super) fn open(mut stream: &[u8], mut key: RecordKey) -> Opened {
    let mut messages = Vec::new();
    let mut copy = Vec::new();
    let mut is_early = true;
    while let Some(record) = Record::next(&mut stream) {
        if !record.is_whole {
            break;
        }
        if record.header[0] == CHANGE_CIPHER_SPEC {
            continue;
        }
        copy.clear();
        copy.extend_from_slice(record.fragment);
        match key.open_next(record.header, &mut copy) {
            Some(opened) if opened.content_type == HANDSHAKE => {
                is_early = false;
                messages.extend_from_slice(opened.content);
            }
            None if is_early => {}
            _ => {
                return Opened {
                    messages,
                    continues: false,
                };
            }
        }
    }
    Opened {
        messages,
        continues: true,
    }
}
