//! The phases, and the controller's response to an event.

use std::time::Duration;

use super::SavedModel;
use crate::Instant;
use crate::congestion::Controller;

/// A phase of Careful Resume (RFC 9959, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumePhase {
    /// The initial window tests whether the path is the remembered one.
    Reconnaissance,
    /// More is sent than the path has been measured to carry.
    Unvalidated,
    /// Waiting for acknowledgments of the packets sent in the unvalidated phase.
    Validating,
    /// Congestion occurred: waiting for acknowledgments of those packets with a small window.
    SafeRetreat,
    /// Careful Resume has ended.
    Normal,
}

/// Why a phase was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumeTrigger {
    /// The path is confirmed, and more data waits than the window allows.
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
    /// A packet was marked Congestion Experienced.
    EcnCe,
    /// In safe retreat, the last unvalidated packet or a later one was acknowledged.
    ExitRecovery,
}

/// Another phase was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeTransition {
    /// The phase before.
    pub old: ResumePhase,
    /// The phase now.
    pub new: ResumePhase,
    /// The trigger; `None` where draft-ietf-tsvwg-careful-resume-qlog has none: the remembered capacity is
    /// too old, not larger than the window, or no longer to be used.
    pub trigger: Option<ResumeTrigger>,
}

/// A window for the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeWindow {
    /// The jump: this many bytes.
    To(u64),
    /// At most this many bytes: a smaller window stays as it is.
    AtMost(u64),
}

/// The model that the controller begins from at the jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeSeed {
    /// When the jump takes place.
    pub at: Instant,
    /// The saved model.
    pub model: SavedModel,
    /// The smallest round-trip time of this connection: that of the path now.
    pub min_rtt: Duration,
    /// The rate of the jump, in bytes per second.
    pub first_rate: u64,
}

/// The response to one event; most have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ResumeStep {
    /// The phase that was entered, if one.
    pub phase: Option<ResumeTransition>,
    /// Whether slow start ends at the present window.
    pub exit_slow_start: bool,
    /// Upper bound in bytes per second of the bandwidth estimate: samples taken while too much was in flight
    /// do not count (appendix C.3).
    pub bandwidth: Option<u64>,
    /// Change of the window.
    pub window: Option<ResumeWindow>,
    /// At the jump of a rate-based controller: the model to begin from.
    pub seed: Option<ResumeSeed>,
    /// The new slow-start threshold, in bytes.
    pub ssthresh: Option<u64>,
    /// Whether the remembered capacity was wrong and must not be used again.
    pub forget: bool,
}

impl ResumeStep {
    /// Applies it to the controller. Logging the transition and forgetting the capacity are up to the caller.
    pub fn apply(&self, controller: &mut dyn Controller) {
        if self.exit_slow_start {
            controller.exit_slow_start();
        }
        if let Some(bandwidth) = self.bandwidth
            && controller.bandwidth().is_some_and(|now| bandwidth < now)
        {
            controller.set_bandwidth(bandwidth);
        }
        match self.window {
            Some(ResumeWindow::To(bytes)) => controller.set_window(bytes),
            Some(ResumeWindow::AtMost(bytes)) if bytes < controller.window() => {
                controller.set_window(bytes);
            }
            Some(ResumeWindow::AtMost(_)) | None => {}
        }
        if let Some(seed) = &self.seed {
            let model = seed.model.with_rtt(seed.min_rtt);
            controller.seed(seed.at, &model, seed.first_rate);
        }
        if let Some(ssthresh) = self.ssthresh {
            controller.set_ssthresh(ssthresh);
        }
    }
}
