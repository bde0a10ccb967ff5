//! PATH_ACK (draft-ietf-quic-multipath-21, section 4.1).
//!
//! ```text
//! PATH_ACK Frame {
//!   Type (i) = 0x3e..0x3f,
//!   Path Identifier (i),
//!   Largest Acknowledged (i),
//!   ACK Delay (i),
//!   ACK Range Count (i),
//!   First ACK Range (i),
//!   ACK Range (..) ...,
//!   [ECN Counts (..)],
//! }
//! ```
//!
//! The fields after the path identifier are those of an ACK frame without its type. Type 0x3f has ECN counts.

use std::ops::RangeInclusive;

use super::ack::{encode_after, frame_type};
use super::{Ack, EcnCounts, FrameErrorKind};
use crate::{PathId, Reader};

/// The packets that the sender received on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAck<'a> {
    /// Path of the packet number space.
    pub path_id: PathId,
    /// The acknowledged packets.
    pub ack: Ack<'a>,
}

impl<'a> PathAck<'a> {
    /// The frame type without ECN counts.
    pub const TYPE: u64 = 0x3e;
    /// The frame type with ECN counts.
    pub const TYPE_ECN: u64 = 0x3f;

    /// Reads the fields after the type, with the checks of [`Ack::decode`].
    pub(super) fn decode(frame_type: u64, reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            path_id: reader.varint()?.try_into()?,
            ack: Ack::decode(frame_type, reader)?,
        })
    }

    /// The frame type, which depends on whether there are ECN counts.
    pub const fn frame_type(&self) -> u64 {
        frame_type(Self::TYPE, self.ack.ecn)
    }

    /// As [`Ack::encode`], for packets of `path_id`.
    pub fn encode(
        path_id: PathId,
        ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
        delay: u64,
        ecn: Option<EcnCounts>,
        buf: &mut Vec<u8>,
    ) -> usize {
        Self::encode_bounded(path_id, ranges, delay, ecn, usize::MAX, buf)
    }

    /// As [`Ack::encode_bounded`], for packets of `path_id`.
    ///
    /// # Panics
    ///
    /// In debug builds, if `ranges` violates the conditions given there.
    #[inline]
    pub fn encode_bounded(
        path_id: PathId,
        ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
        delay: u64,
        ecn: Option<EcnCounts>,
        max_len: usize,
        buf: &mut Vec<u8>,
    ) -> usize {
        let head = [frame_type(Self::TYPE, ecn), path_id.into()];
        encode_after(&head, ranges, delay, ecn, max_len, buf)
    }
}
