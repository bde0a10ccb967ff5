//! Flows that share the queue. Not of the draft.
//!
//! Between probes this controller sends no more than the path delivers, and leaves room: a queue that no packet of a
//! round finds empty, or losses beside a queue and beyond chance, are of other flows. The draft lowers its bounds by
//! no more than what it still gets, so that flows that halve their window for the same losses (CUBIC, NewReno) leave
//! it ever more. With other flows around, this controller keeps [`BETA`](super::bounds::BETA) of what it gets,
//! tolerates fewer losses while it probes, and leaves more room between probes.

use super::bounds::HEADROOM;
use super::loss::LOSS_THRESHOLD;
use super::{Bbr3, ProbeBwPhase, State};
use crate::samples::RateSample;

/// Cycles of probing after which other flows are forgotten.
const CYCLES: u8 = 4;

/// The part of a round that may be lost while the path is probed beside other flows.
const SHARED_LOSS_THRESHOLD: f64 = 0.01;

/// The part of the long-term bound that is left to them.
const SHARED_HEADROOM: f64 = 0.3;

/// Standard deviations of what is lost by chance that are not ascribed to them.
const DEVIATIONS: f64 = 2.0;

/// What is known of other flows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherFlows {
    /// For how many more cycles they are taken to be there.
    cycles: u8,
    /// Whether this controller has been cruising since the round began, and no packet found the queue empty.
    only_queued: bool,
}

impl OtherFlows {
    pub(super) fn are_there(&self) -> bool {
        self.cycles > 0
    }

    /// The part of a round that may be lost beyond chance while the path is probed.
    pub(super) fn loss_threshold(&self) -> f64 {
        match self.are_there() {
            true => SHARED_LOSS_THRESHOLD,
            false => LOSS_THRESHOLD,
        }
    }

    /// The part of the long-term bound that is left to others.
    pub(super) fn headroom(&self) -> f64 {
        match self.are_there() {
            true => SHARED_HEADROOM,
            false => HEADROOM,
        }
    }

    /// A packet found the queue empty.
    pub(super) fn on_empty_queue(&mut self) {
        self.only_queued = false;
    }

    pub(super) fn on_cycle(&mut self) {
        self.cycles = self.cycles.saturating_sub(1);
    }

    pub(super) fn on_seen(&mut self) {
        self.cycles = CYCLES;
    }

    /// A round ends, in which this controller was `is_cruising`.
    pub(super) fn end_round(&mut self, is_cruising: bool) {
        if is_cruising && self.only_queued {
            self.on_seen();
        }
        self.only_queued = is_cruising;
    }
}

impl Bbr3 {
    pub(super) fn yields(&self) -> bool {
        self.config.chance_losses && self.config.yields
    }

    /// Whether what this controller sends now leaves room, so that losses are caused by others.
    fn leaves_room(&self) -> bool {
        match self.state {
            State::ProbeBw(ProbeBwPhase::Cruise) => true,
            State::ProbeBw(ProbeBwPhase::Down) => self.others.are_there(),
            _ => false,
        }
    }

    /// Whether the losses of the round that ends are of others.
    pub(super) fn is_loss_of_others(&self, rate: &RateSample) -> bool {
        self.has_queues()
            && self.leaves_room()
            && !self.cycle.is_stopping()
            && self.exceeds_deviations(rate, DEVIATIONS)
    }
}
