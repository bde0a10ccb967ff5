//! Frames (RFC 9000, sections 12.4 and 19; RFC 9221;
//! draft-ietf-quic-ack-frequency-14; draft-ietf-quic-multipath-21, section 4).
//!
//! This module has the enum of all frames and the iterator over a packet's payload. Each frame, or
//! pair of related frames, has its own file with the format from its RFC. To add a frame: write its
//! file, add a variant to [`Frame`], and add an arm to each `match`.

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

/// A decoded frame. Borrows from the packet that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Padding without content.
    Padding {
        /// Number of consecutive PADDING frames, each one byte.
        len: usize,
    },
    /// Elicits an acknowledgment.
    Ping,
    /// Acknowledges packets.
    Ack(Ack<'a>),
    /// Terminates the sending part of a stream abruptly.
    ResetStream(ResetStream),
    /// Requests that the peer send RESET_STREAM.
    StopSending(StopSending),
    /// TLS handshake data.
    Crypto(Crypto<'a>),
    /// An address validation token for later connections.
    NewToken(NewToken<'a>),
    /// Stream data.
    Stream(Stream<'a>),
    /// Flow control limit of the connection.
    MaxData(MaxData),
    /// Flow control limit of a stream.
    MaxStreamData(MaxStreamData),
    /// Limit of streams that may be opened.
    MaxStreams(MaxStreams),
    /// The connection's flow control limit blocks the sender.
    DataBlocked(DataBlocked),
    /// A stream's flow control limit blocks the sender.
    StreamDataBlocked(StreamDataBlocked),
    /// The stream limit blocks the sender.
    StreamsBlocked(StreamsBlocked),
    /// Issues a connection ID.
    NewConnectionId(NewConnectionId),
    /// Retires a connection ID.
    RetireConnectionId(RetireConnectionId),
    /// Validates a path.
    PathChallenge(PathChallenge),
    /// Answers PATH_CHALLENGE.
    PathResponse(PathResponse),
    /// The transport closes the connection.
    ConnectionClose(ConnectionClose<'a>),
    /// The application closes the connection.
    ApplicationClose(ApplicationClose<'a>),
    /// The server confirms the handshake.
    HandshakeDone,
    /// Unreliable data.
    Datagram(Datagram<'a>),
    /// Requests an acknowledgment frequency.
    AckFrequency(AckFrequency),
    /// Requests an immediate acknowledgment.
    ImmediateAck,
    /// Acknowledges packets of one path.
    PathAck(PathAck<'a>),
    /// Abandons a path.
    PathAbandon(PathAbandon),
    /// Marks a path as backup.
    PathStatusBackup(PathStatusBackup),
    /// Marks a path as available.
    PathStatusAvailable(PathStatusAvailable),
    /// Issues a connection ID for one path.
    PathNewConnectionId(PathNewConnectionId),
    /// Retires a connection ID of one path.
    PathRetireConnectionId(PathRetireConnectionId),
    /// Limit of path IDs.
    MaxPathId(MaxPathId),
    /// The limit of path IDs blocks the sender.
    PathsBlocked(PathsBlocked),
    /// The sender lacks connection IDs for a path.
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

    /// Appends the frame, with its length field if that is optional, and every integer in its shortest form.
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

    /// The frame type that [`encode`](Self::encode) writes.
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

    /// Whether a packet that contains this frame is ack-eliciting (RFC 9002, section 2).
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

    /// Whether this is a probing frame: a packet of probing frames alone does not migrate the
    /// connection (RFC 9000, section 9.1). PATH_NEW_CONNECTION_ID is treated like
    /// NEW_CONNECTION_ID; the draft does not specify this.
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

    /// Whether this is a frame of the multipath extension, permitted only in 1-RTT packets and only
    /// if both ends negotiated multipath (draft-ietf-quic-multipath-21, sections 2 and 4).
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

/// Skips the zero bytes that follow; returns their number.
fn skip_zeros(reader: &mut Reader<'_>) -> usize {
    let rest = reader.rest();
    // Word by word: the first datagrams are mostly padding.
    let (words, _) = rest.as_chunks::<8>();
    let in_words = 8 * words.iter().take_while(|&&word| word == [0; 8]).count();
    let after = rest[in_words..].iter().take_while(|&&byte| byte == 0);
    let zeros = in_words + after.count();
    *reader = Reader::new(&rest[zeros..]);
    zeros
}

/// The frames of a packet's payload, in order. Ends after the first error.
///
/// A run of PADDING frames is one item. An empty payload yields no items; RFC 9000, section 12.4,
/// makes that an error of the peer, which the caller has to detect.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// Reads `payload`, the decrypted payload of a packet.
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
