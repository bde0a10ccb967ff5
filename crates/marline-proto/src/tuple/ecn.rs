//! ECN validation: whether a path delivers ECN marks and the peer reports them (RFC 9000, section 13.4.2).
//!
//! ```text
//!            10 packets or 3 PTO              counts fit
//! Testing ───────────────────────▶ Unknown ──────────────▶ Capable
//!    │  counts fit: Capable          │ all marked lost        │
//!    │                               │ or counts do not fit   │ counts do not fit
//!    └───────────────────────────────┴───────────▶ Failed ◀───┘
//! ```
//!
//! The peer counts per packet number space ([`EcnLedger`]); the verdict is per path ([`EcnValidation`]).
//! A connection marks all its packets with one codepoint: ECT(0), or ECT(1) for L4S (RFC 9331). Counts
//! of the other show that the path modifies marks.

use std::time::Duration;

use marline_wire::frame::EcnCounts;

use crate::limits::ECN_TESTING_PACKETS;
use crate::time::Instant;
use crate::tuple::EcnCodepoint;

/// The state of ECN validation on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnValidationState {
    /// Testing: the first packets carry marks.
    Testing,
    /// Unknown: enough marked packets are sent; no further marks until one is confirmed.
    Unknown,
    /// Capable: marks are delivered and reported; every packet carries one.
    Capable,
    /// Failed: ECN is not used on this path.
    Failed,
}

/// The reason why ECN validation failed (RFC 9000, section 13.4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnFailure {
    /// Marked packets were acknowledged without counts: marks were cleared, or not reported.
    NotReported,
    /// A count has decreased.
    Decreased,
    /// The counts increased by less than the number of acknowledged marked packets.
    Erased,
    /// More marks were counted than sent.
    NeverSent,
    /// Marks were counted with the codepoint that is not sent: the path changes ECT(1) to ECT(0), or the reverse.
    Remarked,
}

/// ECN counts of one packet number space, over all 4-tuples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnLedger {
    /// Packets sent with ECT.
    sent: u64,
    /// The peer's latest counts.
    reported: EcnCounts,
}

impl EcnLedger {
    /// A ledger without sent or reported packets.
    pub(crate) const fn new() -> Self {
        Self {
            sent: 0,
            reported: EcnCounts {
                ect0: 0,
                ect1: 0,
                ce: 0,
            },
        }
    }

    /// Processes an ACK frame that newly acknowledges `acked` packets marked with `codepoint`; returns the number
    /// of newly reported CE marks.
    fn process(
        &mut self,
        codepoint: EcnCodepoint,
        acked: u64,
        counts: Option<EcnCounts>,
    ) -> Result<u64, EcnFailure> {
        let Some(counts) = counts else {
            return if acked == 0 {
                Ok(0)
            } else {
                Err(EcnFailure::NotReported)
            };
        };
        let before = std::mem::replace(&mut self.reported, counts);
        let (Some(ect0), Some(ect1), Some(ce)) = (
            counts.ect0.checked_sub(before.ect0),
            counts.ect1.checked_sub(before.ect1),
            counts.ce.checked_sub(before.ce),
        ) else {
            return Err(EcnFailure::Decreased);
        };
        let (kept, kept_in_all, others) = match codepoint {
            EcnCodepoint::Ect1 => (ect1, counts.ect1, counts.ect0),
            EcnCodepoint::Ect0 | EcnCodepoint::Ce => (ect0, counts.ect0, counts.ect1),
        };
        if others != 0 {
            Err(EcnFailure::Remarked)
        } else if kept_in_all.saturating_add(counts.ce) > self.sent {
            Err(EcnFailure::NeverSent)
        } else if kept.saturating_add(ce) < acked {
            Err(EcnFailure::Erased)
        } else {
            Ok(ce)
        }
    }
}

/// ECN validation of one 4-tuple.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnValidation {
    state: EcnValidationState,
    /// Codepoint of sent packets.
    codepoint: EcnCodepoint,
    /// Marked packets sent, and lost, until validation is complete.
    sent: u64,
    lost: u64,
    /// End of the test, set by the first marked packet.
    deadline: Option<Instant>,
}

impl EcnValidation {
    /// Starts to test `codepoint`, or never uses ECN without one.
    pub(crate) const fn new(codepoint: Option<EcnCodepoint>) -> Self {
        let (state, codepoint) = match codepoint {
            Some(codepoint) => (EcnValidationState::Testing, codepoint),
            None => (EcnValidationState::Failed, EcnCodepoint::Ect0),
        };
        Self {
            state,
            codepoint,
            sent: 0,
            lost: 0,
            deadline: None,
        }
    }

    /// The state of validation.
    pub(crate) const fn state(&self) -> EcnValidationState {
        self.state
    }

    /// Whether marks are those of L4S, which are frequent and need a proportional response (RFC 9331).
    pub(crate) fn is_l4s(&self) -> bool {
        self.codepoint == EcnCodepoint::Ect1
    }

    /// The codepoint of the next datagram.
    #[inline]
    pub(crate) fn mark(&mut self, now: Instant) -> Option<EcnCodepoint> {
        if self.state == EcnValidationState::Testing && self.deadline.is_some_and(|end| now >= end)
        {
            self.end_testing();
        }
        let marks = matches!(
            self.state,
            EcnValidationState::Testing | EcnValidationState::Capable
        );
        marks.then_some(self.codepoint)
    }

    /// Called when a packet was sent in a datagram with ECT; coalesced packets count one each.
    /// `pto` is the probe timeout of the path.
    #[inline]
    pub(crate) fn on_sent(&mut self, ledger: &mut EcnLedger, now: Instant, pto: Duration) {
        ledger.sent += 1;
        if self.state == EcnValidationState::Testing {
            self.sent += 1;
            self.deadline
                .get_or_insert_with(|| now + pto.saturating_mul(3));
            if self.sent >= ECN_TESTING_PACKETS {
                self.end_testing();
            }
        }
    }

    /// Handles an ACK frame with `counts` that newly acknowledged `acked` packets sent with ECT.
    /// Returns the number of packets newly marked CE.
    ///
    /// To be called only if the frame raised the largest acknowledged packet number of its space:
    /// counts of reordered frames are outdated.
    ///
    /// # Errors
    ///
    /// [`EcnFailure`] when validation fails; afterwards nothing is marked or reported.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        ledger: &mut EcnLedger,
        acked: u64,
        counts: Option<EcnCounts>,
    ) -> Result<u64, EcnFailure> {
        let counted = ledger.process(self.codepoint, acked, counts);
        if self.state == EcnValidationState::Failed {
            return Ok(0);
        }
        match counted {
            Ok(ce) => {
                if acked != 0 {
                    self.state = EcnValidationState::Capable;
                }
                Ok(ce)
            }
            Err(failure) => {
                self.state = EcnValidationState::Failed;
                Err(failure)
            }
        }
    }

    /// Called when a packet sent with ECT was declared lost. Validation fails if all packets of the test are lost.
    pub(crate) fn on_lost(&mut self) {
        if matches!(
            self.state,
            EcnValidationState::Testing | EcnValidationState::Unknown
        ) {
            self.lost += 1;
            if self.state == EcnValidationState::Unknown {
                self.end_testing();
            }
        }
    }

    fn end_testing(&mut self) {
        self.state = if self.lost < self.sent {
            EcnValidationState::Unknown
        } else {
            EcnValidationState::Failed
        };
    }
}

#[cfg(test)]
mod tests;
