//! The end of a connection (RFC 9000, section 10).

use bytes::Bytes;
use marline_wire::frame::{ApplicationClose, ConnectionClose};
use marline_wire::{ErrorCode, PathId, TransportError};

use super::Connection;
use super::events::{ConnectionError, EndpointEvent, Event};
use super::lifecycle::{Close, Closing};
use super::packet::DatagramContext;
use crate::level::{EncryptionLevel, SpaceId};
use crate::limits::{MAX_CLOSE_REASON, MIN_DATAGRAM_SIZE};
use crate::paths::Slot;
use crate::paths::Stage;
use crate::time::Instant;
use crate::tuple::Transmit;

impl Connection {
    /// Closes the connection with the application's `code` and `reason`.
    ///
    /// Undelivered data is lost. `code` is a variable-length integer, less than 2^62; at most 256
    /// bytes of `reason` are sent.
    pub fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        let reason = Bytes::copy_from_slice(&reason[..reason.len().min(MAX_CLOSE_REASON)]);
        self.start_closing(
            now,
            Close::Application { code, reason },
            ConnectionError::LocallyClosed,
        );
    }

    /// Closes the idle connection with NO_ERROR, because the endpoint is full.
    pub fn evict(&mut self, now: Instant) {
        let error = TransportError::new(ErrorCode::NO_ERROR, "idle, and the server is full");
        self.start_closing(now, Close::Transport(error), ConnectionError::Evicted);
    }

    /// Closes the connection with a transport error.
    pub(super) fn fail(&mut self, now: Instant, error: TransportError) {
        let cause = ConnectionError::Transport(error.clone());
        self.start_closing(now, Close::Transport(error), cause);
    }

    fn start_closing(&mut self, now: Instant, close: Close, error: ConnectionError) {
        if self.lifecycle.is_open() {
            let until = now + self.pto() * 3;
            self.report_final_sample(now);
            self.telemetry.report_closed(now, &error);
            let paths = self.closing_paths();
            self.lifecycle.move_to_closing(Closing {
                close,
                error: error.clone(),
                paths,
                until,
            });
            self.on_end(error);
        }
    }

    /// Ends the connection without CONNECTION_CLOSE.
    pub(super) fn end_silently(&mut self, now: Instant, error: ConnectionError) {
        if self.lifecycle.is_drained() {
            return;
        }
        self.report_final_sample(now);
        self.telemetry.report_closed(now, &error);
        self.lifecycle.move_to_drained(error.clone());
        self.on_end(error);
        self.events.endpoint.push_back(EndpointEvent::Drained);
    }

    pub(super) fn on_connection_close(
        &mut self,
        now: Instant,
        frame: &ConnectionClose<'_>,
    ) -> Result<(), TransportError> {
        let reason = String::from_utf8_lossy(frame.reason).into_owned();
        self.start_draining(
            now,
            ConnectionError::PeerTransport {
                code: frame.error_code,
                frame_type: frame.frame_type,
                reason,
            },
        );
        Ok(())
    }

    pub(super) fn on_application_close(
        &mut self,
        now: Instant,
        frame: &ApplicationClose<'_>,
    ) -> Result<(), TransportError> {
        let reason = Bytes::copy_from_slice(frame.reason);
        self.start_draining(
            now,
            ConnectionError::PeerApplication {
                code: frame.error_code,
                reason,
            },
        );
        Ok(())
    }

    fn start_draining(&mut self, now: Instant, error: ConnectionError) {
        let until = now + self.pto() * 3;
        self.report_final_sample(now);
        self.telemetry.report_closed(now, &error);
        self.lifecycle.move_to_draining(error.clone(), until);
        self.on_end(error);
    }

    fn on_end(&mut self, error: ConnectionError) {
        self.events.application.push_back(Event::Closed(error));
    }

    /// The paths on which CONNECTION_CLOSE is sent once, the best one last: it may be unknown whether a path still
    /// works.
    fn closing_paths(&self) -> Vec<PathId> {
        let best = self.paths.best();
        let is_other = |at: &Slot| *at != best && self.paths[*at].stage == Stage::Open;
        let others = self.paths.slots().filter(is_other);
        let all = others.chain(std::iter::once(best));
        all.map(|at| self.paths[at].id).collect()
    }

    /// Handles a datagram received while closing or draining.
    pub(super) fn on_datagram_while_closing(&mut self, datagram: &[u8]) {
        let at = self
            .path_of(datagram)
            .filter(|&at| !self.paths[at].is_abandoned());
        let at = at.unwrap_or_else(|| self.paths.best());
        self.lifecycle.on_datagram(self.paths[at].id);
    }

    /// CONNECTION_CLOSE at all encryption levels whose keys the peer may have (RFC 9000, section 10.2.3).
    pub(super) fn transmit_close(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let close = self.lifecycle.close()?.clone();
        while let Some(path) = self.lifecycle.take_due_path() {
            let at = self.paths.by_id(path).unwrap_or_else(|| self.paths.best());
            let transmit = self.transmit_close_on(now, at, &close, buf);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    fn transmit_close_on(
        &mut self,
        now: Instant,
        at: Slot,
        close: &Close,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let start = buf.len();
        let active = &self.paths[at].tuples.active;
        let credit = usize::try_from(active.amplification.credit()).unwrap_or(usize::MAX);
        let size = usize::from(MIN_DATAGRAM_SIZE).min(credit);
        let datagram = DatagramContext {
            path: at,
            end: start + size,
            ecn: None,
            tuple: active.generation,
            dcid: *self.paths[at].remote_cids.active(),
        };
        let tuple = active.addresses;
        for space in SpaceId::ALL {
            let Some(level) = self.establishment.sealing_level(space) else {
                continue;
            };
            let Ok(mut packet) = self.begin_packet(now, level, &datagram, buf) else {
                break;
            };
            let room = packet.limit.saturating_sub(buf.len());
            if !write_close(close, level, room, buf) {
                packet.abandon(buf);
                break;
            }
            let last =
                space == SpaceId::Data || self.establishment.sealing_level(SpaceId::Data).is_none();
            if last
                && self.side.is_client()
                && self.establishment.has_keys(EncryptionLevel::Initial)
            {
                packet.pad(datagram.end, buf);
            }
            packet.padded = false;
            self.finish_packet(now, packet, &datagram, buf);
        }
        let size = buf.len() - start;
        self.on_datagram_sent(at, size);
        (size > 0).then_some(Transmit {
            tuple,
            ecn: None,
            size,
            segment_size: None,
        })
    }
}

/// Appends CONNECTION_CLOSE with as much of the reason as fits into `room` bytes; an application's code and reason only
/// in packets of application data (RFC 9000, section 10.2.3). Returns whether the frame fits.
fn write_close(close: &Close, level: EncryptionLevel, room: usize, buf: &mut Vec<u8>) -> bool {
    let is_handshake = level.space() != SpaceId::Data;
    match close {
        Close::Application { code, reason } if !is_handshake => {
            let frame = ApplicationClose {
                error_code: *code,
                reason: &[],
            };
            let Some(reason) = fitting(reason, frame.size(), room) else {
                return false;
            };
            ApplicationClose { reason, ..frame }.encode(buf);
        }
        Close::Application { .. } | Close::Transport(_) => {
            let (error_code, frame_type, reason) = match close {
                Close::Transport(error) => (error.code, error.frame_type, &*error.reason),
                Close::Application { .. } => (ErrorCode::APPLICATION_ERROR, 0, ""),
            };
            let frame = ConnectionClose {
                error_code,
                frame_type,
                reason: &[],
            };
            let Some(reason) = fitting(reason.as_bytes(), frame.size(), room) else {
                return false;
            };
            ConnectionClose { reason, ..frame }.encode(buf);
        }
    }
    true
}

/// The front of `reason` that fits into `room` bytes beside a frame of `bare` bytes; `None` if the frame does not fit.
fn fitting(reason: &[u8], bare: usize, room: usize) -> Option<&[u8]> {
    // The length of a long reason takes a second byte.
    let left = room.checked_sub(bare)?.saturating_sub(1);
    Some(&reason[..reason.len().min(MAX_CLOSE_REASON).min(left)])
}
