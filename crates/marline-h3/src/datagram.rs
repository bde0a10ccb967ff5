//! HTTP datagrams over QUIC's DATAGRAM frames (RFC 9297, section 2.1).
//!
//! They are used if both ends announce SETTINGS_H3_DATAGRAM, and belong to a request whose semantics define them,
//! such as extended CONNECT.

use bytes::Bytes;
use marline_wire::{Dir, Reader, Side, StreamId, varint};

use crate::error::{Error, ErrorCode};

/// The largest quarter stream ID: a stream ID has 62 bits.
const MAX_QUARTER: u64 = (1 << 60) - 1;

/// A datagram, and the request that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The request stream.
    pub stream: StreamId,
    /// The content.
    pub payload: Bytes,
}

impl Datagram {
    /// Parses the payload of a QUIC DATAGRAM frame. The caller checks whether the stream exists: a datagram may arrive
    /// before its request, or after it.
    ///
    /// # Errors
    /// H3_DATAGRAM_ERROR: it has no quarter stream ID, or one that is too large.
    pub fn decode(mut bytes: Bytes) -> Result<Self, Error> {
        let failed = |reason| Error::new(ErrorCode::DATAGRAM_ERROR, reason);
        let mut reader = Reader::new(&bytes);
        let quarter = reader
            .varint()
            .map_err(|_| failed("a datagram without a quarter stream ID"))?;
        if quarter > MAX_QUARTER {
            return Err(failed("a quarter stream ID above 2^60 - 1"));
        }
        let payload = bytes.split_off(bytes.len() - reader.len());
        Ok(Self {
            stream: StreamId::new(Side::Client, Dir::Bi, quarter),
            payload,
        })
    }

    /// The payload of the QUIC DATAGRAM frame.
    pub fn encode(&self) -> Bytes {
        Self::encode_parts(self.stream, &self.payload)
    }

    /// The payload of the QUIC DATAGRAM frame for `payload` of the request on `stream`.
    pub fn encode_parts(stream: StreamId, payload: &[u8]) -> Bytes {
        let mut bytes = Vec::with_capacity(Self::overhead(stream) + payload.len());
        varint::encode(stream.index(), &mut bytes);
        bytes.extend_from_slice(payload);
        bytes.into()
    }

    /// Bytes of the frame's payload before the content of a datagram.
    pub fn overhead(stream: StreamId) -> usize {
        varint::size(stream.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_names_its_request_by_a_quarter_of_the_stream_id() {
        let datagram = Datagram {
            stream: StreamId::from(44),
            payload: Bytes::from_static(b"hello"),
        };
        assert_eq!(datagram.encode(), &b"\x0bhello"[..]);
        assert_eq!(Datagram::decode(datagram.encode()), Ok(datagram));
    }

    /// RFC 9297, section 2.1.
    #[test]
    fn datagrams_without_a_valid_quarter_stream_id_are_errors() {
        let largest = [&[0xcf][..], &[0xff; 7]].concat();
        assert!(Datagram::decode(largest.into()).is_ok());
        let above = [&[0xd0][..], &[0; 7]].concat();
        for bytes in [vec![], vec![0x40], above] {
            let error = Datagram::decode(bytes.into()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::DATAGRAM_ERROR);
        }
    }
}
