//! Whether a path delivers ECN marks and the peer reports them (RFC 9000, section 13.4.2).
//!
//! ```text
//!            10 packets or 3 PTO              counts fit
//! Testing ───────────────────────▶ Unknown ──────────────▶ Capable
//!    │  counts fit: Capable          │ all marked lost        │
//!    │                               │ or counts do not fit   │ counts do not fit
//!    └───────────────────────────────┴───────────▶ Failed ◀───┘
//! ```
//!
//! The peer counts per packet number space ([`EcnLedger`]); the verdict is per path
//! ([`EcnValidation`]). A connection marks all its packets with one codepoint: ECT(0), or ECT(1) for L4S
//! (RFC 9331). Counts of the other show that the path changes marks.

use std::time::Duration;

use marline_wire::frame::EcnCounts;

use crate::limits::ECN_TESTING_PACKETS;
use crate::time::Instant;
use crate::tuple::EcnCodepoint;

/// What is known about ECN on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnValidationState {
    /// The first packets carry marks.
    Testing,
    /// Enough are sent; no marks until one of them is confirmed.
    Unknown,
    /// Marks are delivered and reported: every packet carries one.
    Capable,
    /// Not to be used on this path.
    Failed,
}

/// Why ECN counts were not believed (RFC 9000, section 13.4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnFailure {
    /// Marked packets were acknowledged without counts: marks erased, or never looked at.
    NotReported,
    /// A count is smaller than it was before.
    Decreased,
    /// Fewer marks were counted than marked packets acknowledged.
    Erased,
    /// Marks were counted that were never sent.
    NeverSent,
    /// Marks were counted with the codepoint that is not sent: the path changes ECT(1) to ECT(0), or the reverse.
    Remarked,
}

/// ECN accounts of one packet number space, whatever paths its packets took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnLedger {
    /// Packets sent with ECT.
    sent: u64,
    /// What the peer reported last.
    reported: EcnCounts,
}

impl EcnLedger {
    /// Nothing sent, nothing reported.
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

    /// Settles an ACK frame that newly acknowledges `acked` packets marked with `codepoint`; returns how many marks
    /// became CE since the last one.
    fn settle(
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

/// ECN on one 4-tuple.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnValidation {
    state: EcnValidationState,
    /// What packets are marked with.
    codepoint: EcnCodepoint,
    /// Marked packets sent, and lost, until the state is settled.
    sent: u64,
    lost: u64,
    /// When testing ends, set by the first marked packet.
    deadline: Option<Instant>,
}

impl EcnValidation {
    /// Begins to test `codepoint`, or never uses ECN without one.
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

    /// What is known now.
    pub(crate) const fn state(&self) -> EcnValidationState {
        self.state
    }

    /// Whether marks are those of L4S: frequent, and answered in proportion (RFC 9331).
    pub(crate) fn is_l4s(&self) -> bool {
        self.codepoint == EcnCodepoint::Ect1
    }

    /// The codepoint that the next datagram is to carry.
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

    /// A packet was sent in a datagram with ECT; coalesced packets count one each. `pto` is the
    /// probe timeout of the path.
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

    /// An ACK frame newly acknowledged `acked` packets that were sent with ECT and carried
    /// `counts`. Returns how many packets were newly marked CE.
    ///
    /// To be called only if the frame raised the largest acknowledged packet number of its space:
    /// counts of a reordered frame are old.
    ///
    /// # Errors
    ///
    /// [`EcnFailure`] at the moment validation fails; afterwards nothing is marked or reported.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        ledger: &mut EcnLedger,
        acked: u64,
        counts: Option<EcnCounts>,
    ) -> Result<u64, EcnFailure> {
        let settled = ledger.settle(self.codepoint, acked, counts);
        if self.state == EcnValidationState::Failed {
            return Ok(0);
        }
        match settled {
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

    /// A packet sent with ECT was declared lost. If none of those sent for the test gets through,
    /// the marks are blamed.
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
