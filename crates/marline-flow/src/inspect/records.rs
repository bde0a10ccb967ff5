//! Records of TLS in a stream (RFC 8446, section 5.1).

use marline_proto::inspect::RecordKey;

const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

const HEADER: usize = 5;

/// The largest content of a record with its expansion, before TLS 1.3 (RFC 5246, section 6.2.3).
const MAX_FRAGMENT: usize = (1 << 14) + 2048;

/// A record, as far as its bytes are there.
struct Record<'a> {
    header: [u8; HEADER],
    fragment: &'a [u8],
    is_whole: bool,
}

impl<'a> Record<'a> {
    /// Takes the next record of a stream; `None` if its header is not there, or is of no record.
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

/// Whether a stream begins with a handshake of TLS.
pub(super) fn begins_handshake(stream: &[u8]) -> bool {
    stream.starts_with(&[HANDSHAKE, 3])
}

/// What a stream begins with.
pub(super) struct Plain<'a> {
    /// The messages in its unencrypted records.
    pub(super) messages: Vec<u8>,
    /// The stream from its first encrypted record, if it has one.
    pub(super) encrypted: Option<&'a [u8]>,
    /// More records follow when more bytes arrive.
    pub(super) continues: bool,
}

impl<'a> Plain<'a> {
    pub(super) fn of(mut stream: &'a [u8]) -> Self {
        let mut messages = Vec::new();
        loop {
            let before = stream;
            let Some(record) = Record::next(&mut stream) else {
                return Self {
                    messages,
                    encrypted: None,
                    continues: before.len() < HEADER,
                };
            };
            match record.header[0] {
                HANDSHAKE => messages.extend_from_slice(record.fragment),
                CHANGE_CIPHER_SPEC => {}
                kind => {
                    return Self {
                        messages,
                        encrypted: (kind == APPLICATION_DATA).then_some(before),
                        continues: kind == APPLICATION_DATA,
                    };
                }
            }
        }
    }
}

/// The messages in encrypted records.
pub(super) struct Opened {
    pub(super) messages: Vec<u8>,
    /// More can be opened when more bytes arrive.
    pub(super) continues: bool,
}

/// Opens the records of a stream that are there as a whole, with the key of the first of them.
pub(super) fn open(mut stream: &[u8], mut key: RecordKey) -> Opened {
    let mut messages = Vec::new();
    let mut copy = Vec::new();
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
                messages.extend_from_slice(opened.content);
            }
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
