//! Unreliable datagrams (RFC 9221).

use std::collections::VecDeque;

use bytes::Bytes;
use marline_wire::frame::Datagram;
use marline_wire::{ErrorCode, TransportError, varint};

use crate::limits::DATAGRAM_OVERHEAD;

/// The reason why a datagram was not queued for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// The peer does not accept datagrams.
    #[error("the peer does not accept datagrams")]
    Unsupported,
    /// The datagram does not fit into a packet of the path, or exceeds the peer's limit.
    #[error("the datagram is larger than the {max} bytes that can be sent")]
    TooLarge {
        /// Maximum length that can be sent, in bytes.
        max: usize,
    },
    /// The send buffer is full.
    #[error("the send buffer for datagrams is full")]
    Blocked,
}

/// Received datagrams, and datagrams to be sent.
#[derive(Debug)]
pub(crate) struct Datagrams {
    incoming: VecDeque<Bytes>,
    incoming_bytes: usize,
    receive_buffer: Option<usize>,
    outgoing: VecDeque<Bytes>,
    outgoing_bytes: usize,
    send_buffer: usize,
    /// Maximum DATAGRAM frame size that the peer accepts, in bytes; 0 if it accepts none.
    peer_limit: u64,
    /// Whether a call returned [`DatagramError::Blocked`] and the application waits.
    blocked: bool,
}

impl Datagrams {
    pub(crate) fn new(receive_buffer: Option<usize>, send_buffer: usize) -> Self {
        Self {
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            receive_buffer,
            outgoing: VecDeque::new(),
            outgoing_bytes: 0,
            send_buffer,
            peer_limit: 0,
            blocked: false,
        }
    }

    pub(crate) fn set_peer_limit(&mut self, max_datagram_frame_size: u64) {
        self.peer_limit = max_datagram_frame_size;
    }

    /// Maximum length of a datagram in a packet with `room` bytes of payload, in bytes.
    pub(crate) fn max_len(&self, room: usize) -> Option<usize> {
        let frame = usize::try_from(self.peer_limit)
            .unwrap_or(usize::MAX)
            .min(room);
        let header = 1 + varint::size(frame as u64);
        (self.peer_limit > 0).then(|| frame.saturating_sub(header))
    }

    /// Queues `data`, which must fit a packet with `room` bytes of payload.
    ///
    /// # Errors
    ///
    /// See [`DatagramError`].
    pub(crate) fn send(&mut self, data: Bytes, room: usize) -> Result<(), DatagramError> {
        let max = self.max_len(room).ok_or(DatagramError::Unsupported)?;
        if data.len() > max {
            return Err(DatagramError::TooLarge { max });
        }
        if self.outgoing_bytes + data.len() + DATAGRAM_OVERHEAD > self.send_buffer {
            self.blocked = true;
            return Err(DatagramError::Blocked);
        }
        self.outgoing_bytes += data.len() + DATAGRAM_OVERHEAD;
        self.outgoing.push_back(data);
        Ok(())
    }

    pub(crate) fn receive(&mut self) -> Option<Bytes> {
        let data = self.incoming.pop_front()?;
        self.incoming_bytes -= data.len() + DATAGRAM_OVERHEAD;
        Some(data)
    }

    /// Stores a received datagram; drops the oldest ones if the buffer is full. Returns whether the buffer was
    /// empty before.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if we did not advertise support for datagrams.
    pub(crate) fn on_frame(&mut self, frame: &Datagram<'_>) -> Result<bool, TransportError> {
        let Some(limit) = self.receive_buffer else {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a DATAGRAM frame, although support was not announced",
            ));
        };
        let first = self.incoming.is_empty();
        let cost = frame.data.len() + DATAGRAM_OVERHEAD;
        while self.incoming_bytes + cost > limit && self.receive().is_some() {}
        if cost <= limit {
            self.incoming_bytes += cost;
            self.incoming.push_back(Bytes::copy_from_slice(frame.data));
        }
        Ok(first)
    }

    pub(crate) fn is_due(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Appends as many DATAGRAM frames as fit; returns how many. A datagram that does not fit into an empty
    /// packet (`fresh`) is dropped.
    pub(crate) fn write_frames(&mut self, buf: &mut Vec<u8>, limit: usize, fresh: bool) -> usize {
        let mut written = 0;
        while let Some(data) = self.outgoing.front() {
            let frame = Datagram { data };
            let size = 1 + varint::size(data.len() as u64) + data.len();
            let fits = buf.len() + size <= limit;
            if fits {
                frame.encode(buf);
                written += 1;
            } else if !fresh || written > 0 {
                break;
            }
            self.outgoing_bytes -= data.len() + DATAGRAM_OVERHEAD;
            self.outgoing.pop_front();
        }
        written
    }

    /// Whether an application that waits may retry; true once.
    pub(crate) fn take_unblocked(&mut self) -> bool {
        self.outgoing_bytes < self.send_buffer / 2 && std::mem::take(&mut self.blocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_receive_buffer_drops_the_oldest() {
        let mut datagrams = Datagrams::new(Some(3 * (10 + DATAGRAM_OVERHEAD)), 1000);
        for n in 0..5u8 {
            datagrams.on_frame(&Datagram { data: &[n; 10] }).unwrap();
        }
        let kept: Vec<u8> = std::iter::from_fn(|| datagrams.receive())
            .map(|data| data[0])
            .collect();
        assert_eq!(kept, [2, 3, 4]);
    }

    #[test]
    fn datagrams_need_support_at_the_receiver() {
        let mut datagrams = Datagrams::new(None, 1000);
        assert_eq!(
            datagrams.send(Bytes::from_static(b"x"), 1200),
            Err(DatagramError::Unsupported)
        );
        assert!(datagrams.on_frame(&Datagram { data: b"x" }).is_err());
    }

    #[test]
    fn a_full_send_buffer_blocks_until_it_drains() {
        let mut datagrams = Datagrams::new(None, 1 << 10);
        datagrams.set_peer_limit(65_535);
        let sent =
            (0..).take_while(|_| datagrams.send(Bytes::from_static(&[7; 100]), 1200).is_ok());
        assert!(sent.count() >= 5);
        assert!(!datagrams.take_unblocked());
        let mut buf = Vec::new();
        while datagrams.write_frames(&mut buf, 1200, true) > 0 {
            buf.clear();
        }
        assert!(datagrams.take_unblocked());
        assert!(!datagrams.take_unblocked());
    }
}
