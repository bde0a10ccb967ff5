//! Careful Resume of a path (RFC 9959), named as in draft-ietf-tsvwg-careful-resume-qlog.

use std::time::Duration;

use marline_wire::PathId;

use crate::coordination::careful_resume::{
    CarefulResume, ResumePhase, ResumeTransition, ResumeTrigger,
};

/// A phase of Careful Resume (RFC 9959, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CarefulResumePhase {
    /// Reconnaissance: the initial window is used to confirm that this is the remembered path.
    Reconnaissance,
    /// Unvalidated: more is sent than the path has been measured to carry.
    Unvalidated,
    /// Validating: waiting for acknowledgments of the packets sent in the unvalidated phase.
    Validating,
    /// Safe retreat after congestion: waiting for those packets with a small window.
    SafeRetreat,
    /// Normal: Careful Resume has ended.
    Normal,
}

impl From<ResumePhase> for CarefulResumePhase {
    fn from(phase: ResumePhase) -> Self {
        match phase {
            ResumePhase::Reconnaissance => Self::Reconnaissance,
            ResumePhase::Unvalidated => Self::Unvalidated,
            ResumePhase::Validating => Self::Validating,
            ResumePhase::SafeRetreat => Self::SafeRetreat,
            ResumePhase::Normal => Self::Normal,
        }
    }
}

/// The reason why a path entered a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CarefulResumeTrigger {
    /// The path is confirmed, and more data waits than the window permits.
    CongestionWindowLimited,
    /// The round-trip time differs from the remembered one.
    RttNotValidated,
    /// The window of the jump is full.
    LastUnvalidatedPacketSent,
    /// The first packet sent in the unvalidated phase, or a later one, was acknowledged.
    FirstUnvalidatedPacketAcknowledged,
    /// The unvalidated phase took a round trip.
    RttExceeded,
    /// Less was sent in the unvalidated phase than the path has been measured to carry.
    RateLimited,
    /// The last packet sent in the unvalidated phase, or a later one, was acknowledged.
    LastUnvalidatedPacketAcknowledged,
    /// The path has changed.
    PathChanged,
    /// A packet was lost.
    PacketLoss,
    /// A packet was marked Congestion Experienced (CE).
    EcnCe,
    /// In safe retreat, the last unvalidated packet or a later one was acknowledged.
    ExitRecovery,
}

impl From<ResumeTrigger> for CarefulResumeTrigger {
    fn from(trigger: ResumeTrigger) -> Self {
        use ResumeTrigger as T;
        match trigger {
            T::CongestionWindowLimited => Self::CongestionWindowLimited,
            T::RttNotValidated => Self::RttNotValidated,
            T::LastUnvalidatedPacketSent => Self::LastUnvalidatedPacketSent,
            T::FirstUnvalidatedPacketAcknowledged => Self::FirstUnvalidatedPacketAcknowledged,
            T::RttExceeded => Self::RttExceeded,
            T::RateLimited => Self::RateLimited,
            T::LastUnvalidatedPacketAcknowledged => Self::LastUnvalidatedPacketAcknowledged,
            T::PathChanged => Self::PathChanged,
            T::PacketLoss => Self::PacketLoss,
            T::EcnCe => Self::EcnCe,
            T::ExitRecovery => Self::ExitRecovery,
        }
    }
}

/// The remembered capacity of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarefulResumeRestored {
    /// Window that was carried in a round trip, in bytes.
    pub congestion_window: u64,
    /// Minimum round-trip time.
    pub rtt: Duration,
}

/// A path entered another phase of Careful Resume; values are those after the transition.
#[derive(Clone, Copy, Debug)]
pub struct CarefulResumePhaseUpdated {
    /// The path.
    pub path: PathId,
    /// Previous phase; `None` for the first.
    pub old: Option<CarefulResumePhase>,
    /// New phase.
    pub new: CarefulResumePhase,
    /// Bytes acknowledged since the jump (pipesize).
    pub pipe_size: u64,
    /// Number of the first packet sent in the unvalidated phase, or its lower bound.
    pub first_unvalidated_packet: u64,
    /// Number of the last packet sent in the unvalidated phase so far, or before the jump.
    pub last_unvalidated_packet: u64,
    /// The controller's window, in bytes.
    pub congestion_window: Option<u64>,
    /// The slow-start threshold, in bytes.
    pub ssthresh: Option<u64>,
    /// The remembered capacity, when reconnaissance ends.
    pub restored: Option<CarefulResumeRestored>,
    /// Reason, if the definitions have a trigger for it.
    pub trigger: Option<CarefulResumeTrigger>,
}

impl CarefulResumePhaseUpdated {
    /// The event for a `transition` of `resume` on `path`, with the controller's present window and
    /// slow-start threshold in bytes.
    pub fn new(
        path: PathId,
        resume: &CarefulResume,
        transition: &ResumeTransition,
        congestion_window: u64,
        ssthresh: Option<u64>,
    ) -> Self {
        let saved = resume.saved();
        let restored = CarefulResumeRestored {
            congestion_window: saved.window,
            rtt: saved.rtt,
        };
        Self {
            path,
            old: Some(transition.old.into()),
            new: transition.new.into(),
            pipe_size: resume.pipe_size(),
            first_unvalidated_packet: resume.first_unvalidated_packet(),
            last_unvalidated_packet: resume.last_unvalidated_packet(),
            congestion_window: Some(congestion_window),
            ssthresh,
            restored: (transition.old == ResumePhase::Reconnaissance).then_some(restored),
            trigger: transition.trigger.map(CarefulResumeTrigger::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::careful_resume::{Capacity, CarefulResumeConfig};
    use crate::time::Instant;

    #[test]
    fn the_remembered_capacity_is_logged_when_reconnaissance_ends() {
        let saved = Capacity {
            window: 300_000,
            rtt: Duration::from_millis(100),
            at: Instant::EPOCH,
            model: None,
        };
        let mut resume = CarefulResume::new(saved, CarefulResumeConfig::default(), 10_000);
        let began = ResumeTransition {
            old: ResumePhase::Reconnaissance,
            new: ResumePhase::Unvalidated,
            trigger: Some(ResumeTrigger::CongestionWindowLimited),
        };
        let event = |resume: &CarefulResume, transition: &ResumeTransition, ssthresh| {
            CarefulResumePhaseUpdated::new(PathId(3), resume, transition, 150_000, ssthresh)
        };
        let first = event(&resume, &began, None);
        assert_eq!(first.path, PathId(3));
        assert_eq!(first.old, Some(CarefulResumePhase::Reconnaissance));
        assert_eq!(first.new, CarefulResumePhase::Unvalidated);
        assert_eq!(first.congestion_window, Some(150_000));
        let restored = CarefulResumeRestored {
            congestion_window: 300_000,
            rtt: Duration::from_millis(100),
        };
        assert_eq!(first.restored, Some(restored));

        let transition = resume.on_path_changed().phase.expect("it ends");
        assert_eq!(transition.new, ResumePhase::Normal);
        let later = ResumeTransition {
            old: ResumePhase::Validating,
            ..transition
        };
        let event = event(&resume, &later, Some(7));
        assert_eq!((event.ssthresh, event.restored), (Some(7), None));
        assert_eq!(event.trigger, Some(CarefulResumeTrigger::PathChanged));
    }
}
