//! Frames of the peer (RFC 9000, sections 19.4 to 19.14).

use super::control::ControlFrame;
use super::recv::RecvPart;
use super::{Stream, StreamEvent, Streams, wait_for_memory};
use marline_wire::frame;
use marline_wire::{Dir, ErrorCode, StreamId, TransportError};

impl Streams {
    /// Processes a STREAM frame.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR, STREAM_LIMIT_ERROR, FLOW_CONTROL_ERROR and FINAL_SIZE_ERROR.
    pub(crate) fn on_stream(&mut self, frame: &frame::Stream<'_>) -> Result<(), TransportError> {
        let credit = self.window.advertised() - self.received;
        self.on_sender_frame(frame.id, |stream| match &mut stream.recv {
            Some(recv) => recv.on_stream(frame, credit),
            None => Ok(0),
        })
        .map_err(|error| error.in_frame(frame.frame_type()))
    }

    /// Processes a RESET_STREAM frame.
    ///
    /// # Errors
    ///
    /// As [`on_stream`](Self::on_stream).
    pub(crate) fn on_reset_stream(
        &mut self,
        frame: &frame::ResetStream,
    ) -> Result<(), TransportError> {
        let credit = self.window.advertised() - self.received;
        self.on_sender_frame(frame.id, |stream| match &mut stream.recv {
            Some(recv) => recv.on_reset(frame, credit),
            None => Ok(0),
        })
        .map_err(|error| error.in_frame(frame::ResetStream::TYPE))
    }

    /// Processes STREAM_DATA_BLOCKED, which may be the first frame of its stream. It has no other effect:
    /// credit is given as data is read.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR and STREAM_LIMIT_ERROR.
    pub(crate) fn on_stream_data_blocked(
        &mut self,
        frame: &frame::StreamDataBlocked,
    ) -> Result<(), TransportError> {
        self.on_sender_frame(frame.id, |_| Ok(0))
            .map_err(|error| error.in_frame(frame::StreamDataBlocked::TYPE))
    }

    /// Processes STOP_SENDING, and responds with RESET_STREAM.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR and STREAM_LIMIT_ERROR.
    pub(crate) fn on_stop_sending(
        &mut self,
        frame: &frame::StopSending,
    ) -> Result<(), TransportError> {
        let id = frame.id;
        self.check_send_part(id)
            .map_err(|error| error.in_frame(frame::StopSending::TYPE))?;
        let Some(stream) = self.table.get_mut(&id) else {
            return Ok(());
        };
        let Some(send) = &mut stream.send else {
            return Ok(());
        };
        let before = send.held();
        if send.on_stop_sending(frame.error_code) {
            self.buffer.update(before, 0);
            self.control.clear(stream, ControlFrame::StreamDataBlocked);
            self.make_due(id, ControlFrame::ResetStream);
            self.note_states(id);
            self.events.push_back(StreamEvent::Stopped {
                id,
                error_code: frame.error_code,
            });
            self.check_ready(id);
            self.wake_writers();
        }
        Ok(())
    }

    /// Processes MAX_DATA.
    ///
    /// # Errors
    ///
    /// None: any value is valid.
    pub(crate) fn on_max_data(&mut self, frame: &frame::MaxData) -> Result<(), TransportError> {
        if self.credit.raise(frame.maximum) {
            self.ready.all = true;
            self.control.data_blocked = false;
        }
        Ok(())
    }

    /// Processes DATA_BLOCKED, which has no effect: credit is given as data is read.
    ///
    /// # Errors
    ///
    /// None: any value is valid.
    pub(crate) fn on_data_blocked(&self, _: &frame::DataBlocked) -> Result<(), TransportError> {
        Ok(())
    }

    /// Processes STREAMS_BLOCKED, which has no effect: streams are permitted as others close.
    ///
    /// # Errors
    ///
    /// None: any value is valid.
    pub(crate) fn on_streams_blocked(
        &self,
        _: &frame::StreamsBlocked,
    ) -> Result<(), TransportError> {
        Ok(())
    }

    /// Processes MAX_STREAM_DATA.
    ///
    /// # Errors
    ///
    /// STREAM_STATE_ERROR and STREAM_LIMIT_ERROR.
    pub(crate) fn on_max_stream_data(
        &mut self,
        frame: &frame::MaxStreamData,
    ) -> Result<(), TransportError> {
        let id = frame.id;
        self.check_send_part(id)
            .map_err(|error| error.in_frame(frame::MaxStreamData::TYPE))?;
        let Some(stream) = self.table.get_mut(&id) else {
            return Ok(());
        };
        let Some(send) = &mut stream.send else {
            return Ok(());
        };
        if send.on_max_stream_data(frame.maximum) {
            wait_for_memory(&mut self.waiting_writers, id, send);
            self.control.clear(stream, ControlFrame::StreamDataBlocked);
            self.wake_writers();
            self.check_ready(id);
        }
        Ok(())
    }

    /// Processes MAX_STREAMS.
    ///
    /// # Errors
    ///
    /// None: any value is valid.
    pub(crate) fn on_max_streams(
        &mut self,
        frame: &frame::MaxStreams,
    ) -> Result<(), TransportError> {
        self.permit_streams(frame.dir, frame.maximum);
        Ok(())
    }

    /// Checks a frame that only the sender of a stream sends, calls `process` for the stream, and counts the
    /// credit that `process` returns as used.
    fn on_sender_frame(
        &mut self,
        id: StreamId,
        process: impl FnOnce(&mut Stream) -> Result<u64, TransportError>,
    ) -> Result<(), TransportError> {
        if self.ids.is_local(id) && id.dir() == Dir::Uni {
            return Err(TransportError::new(
                ErrorCode::STREAM_STATE_ERROR,
                "data on a stream that only this end sends on",
            ));
        }
        self.check_open(id)?;
        let Some(stream) = self.table.get_mut(&id) else {
            return Ok(());
        };
        let held = |stream: &Stream| stream.recv.as_ref().map_or(0, RecvPart::out_of_order);
        let before = held(stream);
        self.received += process(stream)?;
        self.out_of_order.update(before, held(stream));
        let Some(recv) = &mut stream.recv else {
            return Ok(());
        };
        if recv.is_readable() && !recv.readable_notified {
            recv.readable_notified = true;
            self.events.push_back(StreamEvent::Readable(id));
        }
        let credit = recv.take_credit();
        let terminal = recv.is_terminal();
        if !recv.wants_credit() {
            self.control.clear(stream, ControlFrame::MaxStreamData);
        }
        self.return_credit(credit);
        self.note_states(id);
        if terminal {
            self.reap(id);
        }
        Ok(())
    }

    /// Checks that this end sends on the stream.
    fn check_send_part(&mut self, id: StreamId) -> Result<(), TransportError> {
        if !self.ids.is_local(id) && id.dir() == Dir::Uni {
            return Err(TransportError::new(
                ErrorCode::STREAM_STATE_ERROR,
                "a frame for the sending part of a stream that only the peer sends on",
            ));
        }
        self.check_open(id)
    }

    /// Checks that the stream may exist; opens it, and all before it, if it is new.
    fn check_open(&mut self, id: StreamId) -> Result<(), TransportError> {
        let new = self.ids.on_frame_for(id)?;
        if !new.is_empty() {
            self.events.push_back(StreamEvent::Opened(id.dir()));
        }
        for index in new {
            self.create(StreamId::new(id.initiator(), id.dir(), index));
        }
        Ok(())
    }
}
