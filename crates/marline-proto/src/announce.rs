//! Connection-level frames that are retransmitted until acknowledged: HANDSHAKE_DONE, NEW_TOKEN, ACK_FREQUENCY.

use marline_wire::frame::{AckFrequency, HANDSHAKE_DONE, NewToken};
use marline_wire::varint;

use crate::ack::Requested;

/// Delivery state of an announcement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    /// Nothing to send.
    None,
    /// To be sent or retransmitted.
    Due,
    Sent,
    Acked,
}

/// HANDSHAKE_DONE (RFC 9000, section 19.20).
#[derive(Debug, Default)]
pub(crate) struct HandshakeDone(State);

impl HandshakeDone {
    pub(crate) fn announce(&mut self) {
        self.0 = State::Due;
    }

    pub(crate) fn is_due(&self) -> bool {
        self.0 == State::Due
    }

    /// Appends HANDSHAKE_DONE if it is due and fits; returns whether it did.
    pub(crate) fn write_frames(&mut self, buf: &mut Vec<u8>, limit: usize) -> bool {
        if !self.is_due() || buf.len() >= limit {
            return false;
        }
        varint::encode(HANDSHAKE_DONE, buf);
        self.0 = State::Sent;
        true
    }

    pub(crate) fn on_acked(&mut self) {
        self.0 = State::Acked;
    }

    pub(crate) fn on_lost(&mut self) {
        if self.0 == State::Sent {
            self.0 = State::Due;
        }
    }
}

/// An address token for the client's next connection (RFC 9000, section 8.1.3); only the newest is retransmitted.
#[derive(Debug, Default)]
pub(crate) struct NewTokenFrame {
    state: State,
    sequence: u64,
    token: Vec<u8>,
}

impl NewTokenFrame {
    /// Makes a token due, which replaces the previous one.
    pub(crate) fn announce(&mut self, token: Vec<u8>) {
        *self = Self {
            state: State::Due,
            sequence: self.sequence + 1,
            token,
        };
    }

    pub(crate) fn is_due(&self) -> bool {
        self.state == State::Due
    }

    /// Appends NEW_TOKEN if it is due and fits; returns the sequence number of the token.
    pub(crate) fn write_frames(&mut self, buf: &mut Vec<u8>, limit: usize) -> Option<u64> {
        let size = 1 + varint::size(self.token.len() as u64) + self.token.len();
        if !self.is_due() || buf.len() + size > limit {
            return None;
        }
        NewToken { token: &self.token }.encode(buf);
        self.state = State::Sent;
        Some(self.sequence)
    }

    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if sequence == self.sequence {
            self.state = State::Acked;
            self.token = Vec::new();
        }
    }

    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if sequence == self.sequence && self.state == State::Sent {
            self.state = State::Due;
        }
    }
}

/// An ACK_FREQUENCY request; only the newest is retransmitted.
#[derive(Debug, Default)]
pub(crate) struct AckFrequencyFrame {
    state: State,
    sequence: u64,
    requested: Requested,
    /// Whether it was never sent.
    is_new: bool,
}

impl AckFrequencyFrame {
    /// Makes a request due, which replaces the previous one.
    pub(crate) fn announce(&mut self, requested: &Requested) {
        *self = Self {
            sequence: if self.state == State::None {
                0
            } else {
                self.sequence + 1
            },
            state: State::Due,
            requested: *requested,
            is_new: true,
        };
    }

    pub(crate) fn is_due(&self) -> bool {
        self.state == State::Due
    }

    /// Appends ACK_FREQUENCY if it is due and fits; returns its sequence number.
    pub(crate) fn write_frames(&mut self, buf: &mut Vec<u8>, limit: usize) -> Option<u64> {
        let frame = AckFrequency {
            sequence: self.sequence,
            ack_eliciting_threshold: self.requested.threshold,
            requested_max_ack_delay: self.requested.max_delay.as_micros() as u64,
            reordering_threshold: self.requested.reordering_threshold,
        };
        if !self.is_due() || buf.len() + frame.size() > limit {
            return None;
        }
        frame.encode(buf);
        self.state = State::Sent;
        Some(self.sequence)
    }

    /// The request if it was sent for the first time since the last call.
    pub(crate) fn take_first_sent(&mut self) -> Option<Requested> {
        let is_first = self.is_new && self.state == State::Sent;
        is_first.then(|| {
            self.is_new = false;
            self.requested
        })
    }

    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if sequence == self.sequence {
            self.state = State::Acked;
        }
    }

    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if sequence == self.sequence && self.state == State::Sent {
            self.state = State::Due;
        }
    }
}

/// All announcements of a connection.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    pub(crate) handshake_done: HandshakeDone,
    pub(crate) new_token: NewTokenFrame,
    pub(crate) ack_frequency: AckFrequencyFrame,
}

impl Announcements {
    pub(crate) fn is_due(&self) -> bool {
        self.handshake_done.is_due() || self.new_token.is_due() || self.ack_frequency.is_due()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lost_frame_is_due_again_until_one_is_acknowledged() {
        let mut done = HandshakeDone::default();
        let mut buf = Vec::new();
        assert!(!done.write_frames(&mut buf, 10));
        done.announce();
        assert!(!done.write_frames(&mut buf, 0), "no room");
        assert!(done.write_frames(&mut buf, 10));
        assert!(!done.is_due());
        done.on_lost();
        assert!(done.is_due());
        done.on_acked();
        done.on_lost();
        assert!(!done.is_due());
    }

    #[test]
    fn only_the_newest_request_is_sent_again() {
        let mut frame = AckFrequencyFrame::default();
        let mut buf = Vec::new();
        let requested = Requested {
            threshold: 2,
            max_delay: Duration::from_millis(5),
            reordering_threshold: 1,
        };
        frame.announce(&requested);
        assert_eq!(frame.write_frames(&mut buf, 100), Some(0));
        frame.announce(&requested);
        assert_eq!(frame.write_frames(&mut buf, 100), Some(1));
        frame.on_lost(0);
        assert!(!frame.is_due());
        frame.on_lost(1);
        assert!(frame.is_due());
    }

    #[test]
    fn only_the_newest_token_is_sent_again() {
        let mut frame = NewTokenFrame::default();
        let mut buf = Vec::new();
        frame.announce(vec![1; 40]);
        assert_eq!(frame.write_frames(&mut buf, 41), None, "no room");
        let first = frame.write_frames(&mut buf, 100).unwrap();
        frame.announce(vec![2; 40]);
        frame.on_acked(first);
        assert!(frame.is_due());
        let second = frame.write_frames(&mut buf, 100).unwrap();
        assert_ne!(first, second);
        frame.on_lost(first);
        assert!(!frame.is_due());
        frame.on_lost(second);
        assert!(frame.is_due());
        frame.on_acked(second);
        frame.on_lost(second);
        assert!(!frame.is_due());
    }
}
