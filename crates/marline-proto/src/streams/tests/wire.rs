//! A link that loses, reorders and duplicates packets of frames between two ends.

use super::*;
use frame::{Frame, Frames};
use std::collections::BTreeSet;

/// A packet of frames, with the retransmission information of its sender.
#[derive(Clone)]
pub(super) struct Packet {
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    tokens: Vec<StreamToken>,
}

/// One end: its streams, those that its scheduler considers ready, and its packets in flight.
pub(super) struct End {
    pub(super) streams: Streams,
    pub(super) ready: BTreeSet<StreamId>,
    pub(super) in_flight: Vec<Packet>,
    /// Segments that wait for their packets.
    queue: Vec<Segment>,
}

impl End {
    pub(super) fn new(side: Side) -> Self {
        Self {
            streams: streams(side),
            ready: BTreeSet::new(),
            in_flight: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Builds a packet of at most `size` bytes: control frames, FINs, queued segments that fit, and segments of ready
    /// streams, starting with the `pick`-th. Returns whether there was anything to send.
    pub(super) fn send(&mut self, size: usize, pick: usize) -> bool {
        let mut packet = Packet {
            bytes: Vec::new(),
            segments: Vec::new(),
            tokens: Vec::new(),
        };
        let tokens = &mut packet.tokens;
        let due = self.streams.has_control_frames();
        self.streams
            .write_control_frames(&mut packet.bytes, size, &mut |token| tokens.push(token));
        assert!(
            !due || size < 40 || !packet.bytes.is_empty(),
            "nothing was due"
        );
        while let Some(end) = self.streams.take_end(size - packet.bytes.len()) {
            let written = self.streams.write_segment(&end, true, &mut packet.bytes);
            assert_eq!(written, Some(end));
            packet.segments.push(end);
        }
        while let Some(next) = self.queue.first().copied() {
            if next.frame_size(true) > size.saturating_sub(packet.bytes.len()) {
                break;
            }
            self.queue.remove(0);
            let bytes = &mut packet.bytes;
            let written = self.streams.write_segment(&next, true, bytes);
            packet.segments.extend(written);
        }
        loop {
            self.refresh();
            let room = size.saturating_sub(packet.bytes.len() + 10);
            if room == 0 || self.ready.is_empty() {
                break;
            }
            let id = self.ready.iter().nth(pick % self.ready.len()).copied();
            let segment = id
                .and_then(|id| self.streams.take_segment(id, room))
                .expect("a ready stream has a segment");
            let bytes = &mut packet.bytes;
            packet
                .segments
                .extend(self.streams.write_segment(&segment, true, bytes));
        }
        assert!(packet.bytes.len() <= size);
        let any = !packet.bytes.is_empty();
        if any {
            self.in_flight.push(packet);
        }
        any
    }

    /// Sends a copy of the unacknowledged data of the `index`-th packet. Returns whether there was any.
    pub(super) fn copy(&mut self, index: usize) -> bool {
        let Some(original) = self.in_flight.get(index % self.in_flight.len().max(1)) else {
            return false;
        };
        let mut packet = Packet {
            bytes: Vec::new(),
            segments: Vec::new(),
            tokens: Vec::new(),
        };
        for segment in &original.segments {
            let Some(copy) = self.streams.take_copy(segment) else {
                continue;
            };
            assert_eq!(self.streams.take_copy(&copy), None, "it is copied once");
            let bytes = &mut packet.bytes;
            let written = self.streams.write_segment(&copy, true, bytes);
            let written = written.expect("it is in flight");
            assert_eq!(written.range(), copy.range());
            packet.segments.push(written);
        }
        let any = !packet.bytes.is_empty();
        if any {
            self.in_flight.push(packet);
        }
        any
    }

    /// Takes a segment of every ready stream for later packets; its frame takes `room` bytes or less.
    pub(super) fn queue(&mut self, room: usize) {
        self.refresh();
        for id in self.ready.clone() {
            if !self.ready.contains(&id) {
                continue;
            }
            let before = self.streams.pending_bytes(id);
            let segment = self.streams.take_frame(id, room);
            let segment = segment.expect("a ready stream has a segment");
            assert_eq!(self.streams.pending_bytes(id) + segment.len as u64, before);
            self.queue.push(segment);
            self.refresh();
        }
    }

    /// Abandons the path on which segments wait.
    pub(super) fn abandon_queue(&mut self) {
        for segment in self.queue.drain(..) {
            self.streams.return_segment(&segment);
        }
    }

    /// Applies changes of readiness, and checks that every stream is ready if and only if it is reported as ready.
    fn refresh(&mut self) {
        while let Some(ReadyChange { id, ready }) = self.streams.poll_ready_change() {
            let changed = if ready.is_some() {
                self.ready.insert(id)
            } else {
                self.ready.remove(&id) || self.streams.is_all_sent(id)
            };
            assert!(changed, "{id:?} was already {ready:?}");
        }
        let credit = self.streams.credit.left();
        for (&id, stream) in &self.streams.table {
            let ready = stream.is_ready(self.streams.ids.is_permitted(id), credit);
            assert_eq!(ready, self.ready.contains(&id), "{id:?}");
        }
        assert!(
            self.ready
                .iter()
                .all(|id| self.streams.table.contains_key(id))
        );
    }

    /// Delivers the `index`-th packet in flight to `peer`; it stays in flight if `again`.
    pub(super) fn deliver(&mut self, index: usize, again: bool, peer: &mut Self) {
        if self.in_flight.is_empty() {
            return;
        }
        let index = index % self.in_flight.len();
        let packet = if again {
            self.in_flight[index].clone()
        } else {
            self.in_flight.remove(index)
        };
        peer.receive(&packet.bytes);
        if !again {
            for segment in &packet.segments {
                self.streams.on_segment_acked(segment);
            }
            for token in &packet.tokens {
                self.streams.on_token_acked(token);
            }
        }
    }

    /// Declares the `index`-th packet in flight lost; it arrives nevertheless if `spurious`.
    pub(super) fn lose(&mut self, index: usize, spurious: bool, peer: &mut Self) {
        if self.in_flight.is_empty() {
            return;
        }
        let packet = self.in_flight.remove(index % self.in_flight.len());
        if spurious {
            peer.receive(&packet.bytes);
        }
        for segment in &packet.segments {
            self.streams.on_segment_lost(segment);
        }
        for token in &packet.tokens {
            self.streams.on_token_lost(token);
        }
        if spurious {
            for segment in &packet.segments {
                self.streams.on_segment_acked(segment);
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let streams = &mut self.streams;
        for frame in Frames::new(bytes) {
            match frame.expect("well-formed frames") {
                Frame::Stream(frame) => streams.on_stream(&frame),
                Frame::ResetStream(frame) => streams.on_reset_stream(&frame),
                Frame::StopSending(frame) => streams.on_stop_sending(&frame),
                Frame::MaxData(frame) => streams.on_max_data(&frame),
                Frame::MaxStreamData(frame) => streams.on_max_stream_data(&frame),
                Frame::MaxStreams(frame) => streams.on_max_streams(&frame),
                Frame::DataBlocked(frame) => streams.on_data_blocked(&frame),
                Frame::StreamDataBlocked(frame) => streams.on_stream_data_blocked(&frame),
                Frame::StreamsBlocked(frame) => streams.on_streams_blocked(&frame),
                other => panic!("{other:?} is not about streams"),
            }
            .expect("the peer keeps to the rules");
        }
        let buffered: usize = streams
            .table
            .values()
            .filter_map(|stream| stream.recv.as_ref())
            .map(RecvPart::buffered)
            .sum();
        assert!(buffered as u64 <= streams.window.size());
    }
}
