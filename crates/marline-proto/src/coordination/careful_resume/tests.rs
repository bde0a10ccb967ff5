//! The state machine alone, and with real controllers on a simulated path.

use super::*;

use sender::Sender;

use crate::Instant;

mod examples;
mod pipe;
mod random;
mod step;
mod transfers;
mod transitions;

/// The remembered capacity of appendix B: 300 packets, with the present round-trip time.
const SAVED: Capacity = Capacity {
    window: 300 * sender::DATAGRAM,
    rtt: sender::RTT,
    at: Instant::EPOCH,
    model: None,
};

const fn transition(
    old: ResumePhase,
    new: ResumePhase,
    trigger: Option<ResumeTrigger>,
) -> ResumeTransition {
    ResumeTransition { old, new, trigger }
}

impl Sender {
    /// A sender that has jumped from 29 packets to 150.
    fn jumped() -> Self {
        let mut sender = Self::confirmed(SAVED, CarefulResumeConfig::default());
        sender.limit();
        assert_eq!(sender.resume.phase(), ResumePhase::Unvalidated);
        sender
    }

    /// A sender that has sent all 121 packets that its jump allows.
    fn validating() -> Self {
        let mut sender = Self::jumped();
        sender.send(121);
        assert_eq!(sender.resume.phase(), ResumePhase::Validating);
        sender
    }

    /// Sends an ACK-only packet.
    fn send_ack_only(&mut self) {
        self.ack_only = Some(self.next);
        self.next += 1;
    }

    /// The latest transition, which led to the present phase.
    fn latest(&self) -> ResumeTransition {
        let latest = self.transitions.last().expect("something happened");
        assert_eq!(latest.new, self.resume.phase());
        *latest
    }
}
