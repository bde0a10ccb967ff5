//! Passes each frame to the module that owns it.

use marline_wire::frame::{
    Frame, FrameError, FrameErrorKind, PathStatusAvailable, PathStatusBackup,
};
use marline_wire::{PathId, TransportError};

use super::Connection;
use super::events::Event;
use super::receive::ReceivedPacket;
use crate::paths::{Slot, StatusFrame};
use crate::scheduling::path::PathStatus;
use crate::time::Instant;

impl Connection {
    /// # Errors
    ///
    /// If the frame violates the protocol; the connection closes with this error.
    pub(super) fn dispatch(
        &mut self,
        now: Instant,
        packet: &ReceivedPacket,
        frame: &Frame<'_>,
    ) -> Result<(), TransportError> {
        frame.check_permitted(packet.kind)?;
        self.telemetry.frames_received.count(frame);
        match frame {
            Frame::Stream(frame) => self.streams.on_stream(frame),
            Frame::Ack(frame) => match self.paths.by_id(PathId::INITIAL) {
                Some(at) => self.on_ack(now, at, packet.space, frame, packet),
                None => Ok(()),
            },
            Frame::Padding { .. } | Frame::Ping => Ok(()),
            Frame::Crypto(frame) => {
                let recovery = &self.paths[Slot::FIRST].recovery;
                self.establishment
                    .on_crypto(now, packet.space, frame, recovery)
            }
            Frame::MaxData(frame) => self.streams.on_max_data(frame),
            Frame::MaxStreamData(frame) => self.streams.on_max_stream_data(frame),
            Frame::MaxStreams(frame) => self.streams.on_max_streams(frame),
            Frame::ResetStream(frame) => self.streams.on_reset_stream(frame),
            Frame::StopSending(frame) => self.streams.on_stop_sending(frame),
            Frame::DataBlocked(frame) => self.streams.on_data_blocked(frame),
            Frame::StreamDataBlocked(frame) => self.streams.on_stream_data_blocked(frame),
            Frame::StreamsBlocked(frame) => self.streams.on_streams_blocked(frame),
            Frame::Datagram(frame) => self.datagrams.on_frame(frame).map(|is_first| {
                if is_first {
                    self.events.application.push_back(Event::DatagramReceived);
                }
            }),
            Frame::NewConnectionId(frame) => {
                self.paths.on_new_connection_id(PathId::INITIAL, frame)
            }
            Frame::RetireConnectionId(frame) => {
                self.on_retire_connection_id(PathId::INITIAL, frame, packet)
            }
            Frame::PathChallenge(frame) => self.on_path_challenge(frame, packet),
            Frame::PathResponse(frame) => self.on_path_response(now, frame),
            Frame::HandshakeDone => self.on_handshake_done(now),
            Frame::NewToken(frame) => self.establishment.on_new_token(frame),
            Frame::AckFrequency(frame) => self.on_ack_frequency(now, packet.path, frame),
            Frame::ImmediateAck => {
                self.paths[packet.path].space.acknowledge_by(now);
                Ok(())
            }
            Frame::ConnectionClose(frame) => self.on_connection_close(now, frame),
            Frame::ApplicationClose(frame) => self.on_application_close(now, frame),
            frame => self.dispatch_of_paths(now, packet, frame),
        }
    }

    /// Dispatches frames of the multipath extension.
    #[inline(never)]
    fn dispatch_of_paths(
        &mut self,
        now: Instant,
        packet: &ReceivedPacket,
        frame: &Frame<'_>,
    ) -> Result<(), TransportError> {
        if !self.paths.is_multipath() {
            return Err(unknown(frame));
        }
        match frame {
            Frame::PathAck(frame) => self.on_path_ack(now, frame, packet),
            Frame::PathAbandon(frame) => self.on_path_abandon(now, frame),
            Frame::PathStatusBackup(PathStatusBackup { path_id, sequence }) => {
                self.on_path_status(&StatusFrame {
                    path: *path_id,
                    status: PathStatus::Backup,
                    sequence: *sequence,
                    frame_type: PathStatusBackup::TYPE,
                })
            }
            Frame::PathStatusAvailable(PathStatusAvailable { path_id, sequence }) => self
                .on_path_status(&StatusFrame {
                    path: *path_id,
                    status: PathStatus::Available,
                    sequence: *sequence,
                    frame_type: PathStatusAvailable::TYPE,
                }),
            Frame::PathNewConnectionId(frame) => self.paths.on_path_new_connection_id(frame),
            Frame::PathRetireConnectionId(frame) => {
                self.on_path_retire_connection_id(frame, packet)
            }
            Frame::MaxPathId(frame) => self.paths.on_max_path_id(frame),
            Frame::PathsBlocked(frame) => self.paths.on_paths_blocked(frame),
            Frame::PathCidsBlocked(frame) => self.paths.on_path_cids_blocked(frame),
            frame => Err(unknown(frame)),
        }
    }

    /// The error for a frame that cannot be decoded. Only frames of the multipath extension have path IDs: if it was
    /// not negotiated, their types are unknown.
    #[cold]
    pub(super) fn frame_error(&self, mut error: FrameError) -> TransportError {
        if error.kind == FrameErrorKind::LargePathId && !self.paths.is_multipath() {
            error.kind = FrameErrorKind::UnknownType;
        }
        error.into()
    }
}

/// The error for a frame of an extension that was not negotiated: an unknown type (RFC 9000, section 12.4).
#[cold]
fn unknown(frame: &Frame<'_>) -> TransportError {
    let error = FrameError {
        frame_type: frame.frame_type(),
        kind: FrameErrorKind::UnknownType,
    };
    error.into()
}
