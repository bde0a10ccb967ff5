//! Frames: what packets carry (RFC 9000, sections 12.4 and 19; RFC 9221;
//! draft-ietf-quic-ack-frequency-14; draft-ietf-quic-multipath-21, section 4).
//!
//! Here are the enum of all frames and the iterator over a payload; each kind of frame, or pair of
//! kinds, has a file with its figure. To add one: its file, a variant, a line in each `match`.

mod ack;
mod ack_frequency;
mod close;
mod connection_id;
mod crypto;
mod datagram;
mod error;
mod fields;
mod max_data;
mod max_path_id;
mod max_stream_data;
mod max_streams;
mod new_token;
mod path;
mod path_abandon;
mod path_ack;
mod path_cids_blocked;
mod path_connection_id;
mod path_status;
mod permission;
mod reset_stream;
mod stream;

pub use ack::{Ack, AckRanges, EcnCounts};
pub use ack_frequency::{AckFrequency, IMMEDIATE_ACK};
pub use close::{ApplicationClose, ConnectionClose};
pub use connection_id::{NewConnectionId, RetireConnectionId};
pub use crypto::Crypto;
pub use datagram::Datagram;
pub use error::{FrameError, FrameErrorKind};
pub use max_data::{DataBlocked, MaxData};
pub use max_path_id::{MaxPathId, PathsBlocked};
pub use max_stream_data::{MaxStreamData, StreamDataBlocked};
pub use max_streams::{MAX_STREAMS, MaxStreams, StreamsBlocked};
pub use new_token::NewToken;
pub use path::{PathChallenge, PathResponse};
pub use path_abandon::PathAbandon;
pub use path_ack::PathAck;
pub use path_cids_blocked::PathCidsBlocked;
pub use path_connection_id::{PathNewConnectionId, PathRetireConnectionId};
pub use path_status::{PathStatusAvailable, PathStatusBackup};
pub use reset_stream::{ResetStream, StopSending};
pub use stream::Stream;

use crate::{Reader, Truncated, varint};

/// The type of PADDING, which has no fields (section 19.1).
pub const PADDING: u64 = 0x00;
/// The type of PING, which has no fields (section 19.2).
pub const PING: u64 = 0x01;
/// The type of HANDSHAKE_DONE, which has no fields (section 19.20).
pub const HANDSHAKE_DONE: u64 = 0x1e;

/// One frame, borrowed from the packet it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes that mean nothing.
    Padding {
        /// How many PADDING frames, of one byte each, stand in a row.
        len: usize,
    },
    /// Asks for an acknowledgment, nothing more.
    Ping,
    /// Packets received.
    Ack(Ack<'a>),
    /// The end of sending on a stream, before its data was all sent.
    ResetStream(ResetStream),
    /// A request for the above.
    StopSending(StopSending),
    /// Handshake data.
    Crypto(Crypto<'a>),
    /// A token for later connections.
    NewToken(NewToken<'a>),
    /// Stream data.
    Stream(Stream<'a>),
    /// Credit for the connection.
    MaxData(MaxData),
    /// Credit for a stream.
    MaxStreamData(MaxStreamData),
    /// Credit for new streams.
    MaxStreams(MaxStreams),
    /// No credit left for the connection.
    DataBlocked(DataBlocked),
    /// No credit left for a stream.
    StreamDataBlocked(StreamDataBlocked),
    /// No credit left for new streams.
    StreamsBlocked(StreamsBlocked),
    /// A connection ID to use.
    NewConnectionId(NewConnectionId),
    /// A connection ID no longer used.
    RetireConnectionId(RetireConnectionId),
    /// Does this path reach you?
    PathChallenge(PathChallenge),
    /// It does.
    PathResponse(PathResponse),
    /// The transport closes.
    ConnectionClose(ConnectionClose<'a>),
    /// The application closes.
    ApplicationClose(ApplicationClose<'a>),
    /// The server confirms the handshake.
    HandshakeDone,
    /// Unreliable data.
    Datagram(Datagram<'a>),
    /// When to acknowledge from now on.
    AckFrequency(AckFrequency),
    /// Acknowledge now.
    ImmediateAck,
    /// Packets received on one path.
    PathAck(PathAck<'a>),
    /// The end of a path.
    PathAbandon(PathAbandon),
    /// A path to be used only when no other works.
    PathStatusBackup(PathStatusBackup),
    /// A path to be used.
    PathStatusAvailable(PathStatusAvailable),
    /// A connection ID to use on one path.
    PathNewConnectionId(PathNewConnectionId),
    /// A connection ID of one path, no longer used.
    PathRetireConnectionId(PathRetireConnectionId),
    /// Credit for new paths.
    MaxPathId(MaxPathId),
    /// No credit left for new paths.
    PathsBlocked(PathsBlocked),
    /// No connection ID left for a path.
    PathCidsBlocked(PathCidsBlocked),
}

impl<'a> Frame<'a> {
    #[inline]
    fn decode(frame_type: u64, reader: &mut Reader<'a>) -> Result<Self, FrameErrorKind> {
        Ok(match frame_type {
            Stream::TYPE..=Stream::TYPE_LAST => Self::Stream(Stream::decode(frame_type, reader)?),
            Ack::TYPE | Ack::TYPE_ECN => Self::Ack(Ack::decode(frame_type, reader)?),
            PADDING => Self::Padding {
                len: 1 + skip_zeros(reader),
            },
            PING => Self::Ping,
            ResetStream::TYPE => Self::ResetStream(ResetStream::decode(reader)?),
            StopSending::TYPE => Self::StopSending(StopSending::decode(reader)?),
            Crypto::TYPE => Self::Crypto(Crypto::decode(reader)?),
            NewToken::TYPE => Self::NewToken(NewToken::decode(reader)?),
            MaxData::TYPE => Self::MaxData(MaxData::decode(reader)?),
            MaxStreamData::TYPE => Self::MaxStreamData(MaxStreamData::decode(reader)?),
            MaxStreams::TYPE | MaxStreams::TYPE_UNI => {
                Self::MaxStreams(MaxStreams::decode(frame_type, reader)?)
            }
            DataBlocked::TYPE => Self::DataBlocked(DataBlocked::decode(reader)?),
            StreamDataBlocked::TYPE => Self::StreamDataBlocked(StreamDataBlocked::decode(reader)?),
            StreamsBlocked::TYPE | StreamsBlocked::TYPE_UNI => {
                Self::StreamsBlocked(StreamsBlocked::decode(frame_type, reader)?)
            }
            NewConnectionId::TYPE => Self::NewConnectionId(NewConnectionId::decode(reader)?),
            RetireConnectionId::TYPE => {
                Self::RetireConnectionId(RetireConnectionId::decode(reader)?)
            }
            PathChallenge::TYPE => Self::PathChallenge(PathChallenge::decode(reader)?),
            PathResponse::TYPE => Self::PathResponse(PathResponse::decode(reader)?),
            ConnectionClose::TYPE => Self::ConnectionClose(ConnectionClose::decode(reader)?),
            ApplicationClose::TYPE => Self::ApplicationClose(ApplicationClose::decode(reader)?),
            HANDSHAKE_DONE => Self::HandshakeDone,
            Datagram::TYPE | Datagram::TYPE_LEN => {
                Self::Datagram(Datagram::decode(frame_type, reader)?)
            }
            AckFrequency::TYPE => Self::AckFrequency(AckFrequency::decode(reader)?),
            IMMEDIATE_ACK => Self::ImmediateAck,
            PathAck::TYPE | PathAck::TYPE_ECN => {
                Self::PathAck(PathAck::decode(frame_type, reader)?)
            }
            PathAbandon::TYPE => Self::PathAbandon(PathAbandon::decode(reader)?),
            PathStatusBackup::TYPE => Self::PathStatusBackup(PathStatusBackup::decode(reader)?),
            PathStatusAvailable::TYPE => {
                Self::PathStatusAvailable(PathStatusAvailable::decode(reader)?)
            }
            PathNewConnectionId::TYPE => {
                Self::PathNewConnectionId(PathNewConnectionId::decode(reader)?)
            }
            PathRetireConnectionId::TYPE => {
                Self::PathRetireConnectionId(PathRetireConnectionId::decode(reader)?)
            }
            MaxPathId::TYPE => Self::MaxPathId(MaxPathId::decode(reader)?),
            PathsBlocked::TYPE => Self::PathsBlocked(PathsBlocked::decode(reader)?),
            PathCidsBlocked::TYPE => Self::PathCidsBlocked(PathCidsBlocked::decode(reader)?),
            _ => return Err(FrameErrorKind::UnknownType),
        })
    }

    /// Appends the frame: with a length where that is optional, and each integer in its shortest
    /// form.
    pub fn encode(&self, buf: &mut Vec<u8>) {
        match self {
            Self::Padding { len } => buf.resize(buf.len() + len, 0),
            Self::Ping | Self::HandshakeDone | Self::ImmediateAck => {
                varint::encode(self.frame_type(), buf);
            }
            Self::Ack(frame) => {
                Ack::encode(frame.ranges(), frame.delay, frame.ecn, buf);
            }
            Self::ResetStream(frame) => frame.encode(buf),
            Self::StopSending(frame) => frame.encode(buf),
            Self::Crypto(frame) => frame.encode(buf),
            Self::NewToken(frame) => frame.encode(buf),
            Self::Stream(frame) => frame.encode(buf),
            Self::MaxData(frame) => frame.encode(buf),
            Self::MaxStreamData(frame) => frame.encode(buf),
            Self::MaxStreams(frame) => frame.encode(buf),
            Self::DataBlocked(frame) => frame.encode(buf),
            Self::StreamDataBlocked(frame) => frame.encode(buf),
            Self::StreamsBlocked(frame) => frame.encode(buf),
            Self::NewConnectionId(frame) => frame.encode(buf),
            Self::RetireConnectionId(frame) => frame.encode(buf),
            Self::PathChallenge(frame) => frame.encode(buf),
            Self::PathResponse(frame) => frame.encode(buf),
            Self::ConnectionClose(frame) => frame.encode(buf),
            Self::ApplicationClose(frame) => frame.encode(buf),
            Self::Datagram(frame) => frame.encode(buf),
            Self::AckFrequency(frame) => frame.encode(buf),
            Self::PathAck(PathAck { path_id, ack }) => {
                PathAck::encode(*path_id, ack.ranges(), ack.delay, ack.ecn, buf);
            }
            Self::PathAbandon(frame) => frame.encode(buf),
            Self::PathStatusBackup(frame) => frame.encode(buf),
            Self::PathStatusAvailable(frame) => frame.encode(buf),
            Self::PathNewConnectionId(frame) => frame.encode(buf),
            Self::PathRetireConnectionId(frame) => frame.encode(buf),
            Self::MaxPathId(frame) => frame.encode(buf),
            Self::PathsBlocked(frame) => frame.encode(buf),
            Self::PathCidsBlocked(frame) => frame.encode(buf),
        }
    }

    /// The frame type, as [`encode`](Self::encode) sends it.
    pub const fn frame_type(&self) -> u64 {
        match self {
            Self::Padding { .. } => PADDING,
            Self::Ping => PING,
            Self::Ack(frame) => frame.frame_type(),
            Self::ResetStream(_) => ResetStream::TYPE,
            Self::StopSending(_) => StopSending::TYPE,
            Self::Crypto(_) => Crypto::TYPE,
            Self::NewToken(_) => NewToken::TYPE,
            Self::Stream(frame) => frame.frame_type(),
            Self::MaxData(_) => MaxData::TYPE,
            Self::MaxStreamData(_) => MaxStreamData::TYPE,
            Self::MaxStreams(frame) => frame.frame_type(),
            Self::DataBlocked(_) => DataBlocked::TYPE,
            Self::StreamDataBlocked(_) => StreamDataBlocked::TYPE,
            Self::StreamsBlocked(frame) => frame.frame_type(),
            Self::NewConnectionId(_) => NewConnectionId::TYPE,
            Self::RetireConnectionId(_) => RetireConnectionId::TYPE,
            Self::PathChallenge(_) => PathChallenge::TYPE,
            Self::PathResponse(_) => PathResponse::TYPE,
            Self::ConnectionClose(_) => ConnectionClose::TYPE,
            Self::ApplicationClose(_) => ApplicationClose::TYPE,
            Self::HandshakeDone => HANDSHAKE_DONE,
            Self::Datagram(_) => Datagram::TYPE_LEN,
            Self::AckFrequency(_) => AckFrequency::TYPE,
            Self::ImmediateAck => IMMEDIATE_ACK,
            Self::PathAck(frame) => frame.frame_type(),
            Self::PathAbandon(_) => PathAbandon::TYPE,
            Self::PathStatusBackup(_) => PathStatusBackup::TYPE,
            Self::PathStatusAvailable(_) => PathStatusAvailable::TYPE,
            Self::PathNewConnectionId(_) => PathNewConnectionId::TYPE,
            Self::PathRetireConnectionId(_) => PathRetireConnectionId::TYPE,
            Self::MaxPathId(_) => MaxPathId::TYPE,
            Self::PathsBlocked(_) => PathsBlocked::TYPE,
            Self::PathCidsBlocked(_) => PathCidsBlocked::TYPE,
        }
    }

    /// Whether a packet with this frame must be acknowledged (RFC 9002, section 2).
    #[inline]
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Ack(_)
                | Self::PathAck(_)
                | Self::Padding { .. }
                | Self::ConnectionClose(_)
                | Self::ApplicationClose(_)
        )
    }

    /// Whether the frame may be sent to probe a path; a packet of such frames alone does not
    /// migrate the connection (RFC 9000, section 9.1). PATH_NEW_CONNECTION_ID is taken for what it
    /// extends: the draft does not say.
    #[inline]
    pub const fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::PathChallenge(_)
                | Self::PathResponse(_)
                | Self::NewConnectionId(_)
                | Self::PathNewConnectionId(_)
                | Self::Padding { .. }
        )
    }

    /// Whether the frame may be sent only if both ends want several paths, and in 1-RTT packets
    /// only (draft-ietf-quic-multipath-21, sections 2 and 4).
    #[inline]
    pub const fn is_multipath(&self) -> bool {
        matches!(
            self,
            Self::PathAck(_)
                | Self::PathAbandon(_)
                | Self::PathStatusBackup(_)
                | Self::PathStatusAvailable(_)
                | Self::PathNewConnectionId(_)
                | Self::PathRetireConnectionId(_)
                | Self::MaxPathId(_)
                | Self::PathsBlocked(_)
                | Self::PathCidsBlocked(_)
        )
    }
}

/// Takes the zero bytes that come next; returns how many.
fn skip_zeros(reader: &mut Reader<'_>) -> usize {
    let rest = reader.rest();
    let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
    *reader = Reader::new(&rest[zeros..]);
    zeros
}

/// The frames of a packet's payload, in order. Ends after the first error.
///
/// A run of PADDING is one item. An empty payload has no frames, which is an error of the peer's
/// that the caller sees (RFC 9000, section 12.4).
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// Reads `payload`, which is what is left of a packet without header and protection.
    #[inline]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(payload),
        }
    }

    #[inline]
    fn frame(&mut self) -> Result<Frame<'a>, FrameError> {
        let before = self.reader.len();
        let frame_type = self.reader.varint().map_err(|Truncated| FrameError {
            frame_type: 0,
            kind: FrameErrorKind::Truncated,
        })?;
        if before - self.reader.len() != varint::size(frame_type) {
            return Err(FrameError {
                frame_type,
                kind: FrameErrorKind::LongType,
            });
        }
        Frame::decode(frame_type, &mut self.reader).map_err(|kind| FrameError { frame_type, kind })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = self.frame();
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

impl std::iter::FusedIterator for Frames<'_> {}

#[cfg(test)]
mod tests;
