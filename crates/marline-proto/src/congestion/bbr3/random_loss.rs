//! Random loss: loss while the path holds no queue. Not of the draft.
//!
//! A packet that finds the queue empty is not dropped for lack of buffer. The loss rate of such packets, while the controller
//! sends no faster than its model, is the random loss of the link: losses at that rate do not indicate congestion. A policer
//! also drops without a queue, but not below its rate, so packets of probes are not counted.

use std::time::Duration;

use super::rows::LostRows;
use super::{Bbr3, ProbeBwPhase, State};
use crate::samples::{RateSample, RttView};

/// Round-trip times above the path's by more than one part in this many indicate a queue.
const QUEUE: u32 = 8;

/// Smallest delay that indicates a queue: hosts and aggregation add as much.
const MIN_QUEUE: Duration = Duration::from_millis(1);

/// With `coexist`, the largest delay required to indicate a queue, however long the path: managed queues are kept at 5 ms (RFC
/// 8289).
const MANAGED_QUEUE: Duration = Duration::from_millis(4);

/// The same in datagrams at the bottleneck's rate, if that takes longer.
const MANAGED_DATAGRAMS: u64 = 4;

/// With a short buffer, delays above this part of the largest one seen indicate a queue.
const QUEUE_OF_LARGEST: f64 = 0.3;

/// The factor by which the largest delay decays with each sample: half of it is left after 1400.
const LARGEST_QUEUE_KEPT: f64 = 0.9995;

/// With cross traffic, samples in a row without a queue before packets count: a short buffer is full only briefly, and a drop
/// may be detected when the latest packet met no queue.
const CLEAR_BESIDE_OTHERS: u32 = 2;

/// Packets over which the loss rate is averaged.
const PACKETS: f64 = 400.0;

/// Packets assumed to have arrived when the average begins.
const ARRIVED_BEFORE: f64 = 50.0;

/// Packets that a seeded loss rate counts as.
const SEEDED: f64 = 100.0;

/// Largest loss rate that is considered random.
const LARGEST_SHARE: f64 = 0.1;

/// Losses over which the part in bursts is averaged.
const LOSSES: f64 = 16.0;

/// Largest part of losses that are taken to continue a burst.
const LARGEST_ROW: f64 = 0.8;

/// Standard deviations above the expected random loss that are tolerated.
const DEVIATIONS: f64 = 3.0;

/// The same beside a queue, where losses between probes only lower the short-term bounds.
const QUEUED_DEVIATIONS: f64 = 1.0;

/// Lost packets in excess of random loss that are not congestion without a queue.
const MIN_LOSSES: f64 = 2.0;

/// The random loss of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomLoss {
    /// The part of packets that is lost.
    share: f64,
    /// The packets averaged over, up to [`PACKETS`].
    packets: f64,
    /// The part of losses that follow the loss of the preceding packet.
    in_rows: f64,
    rows: LostRows,
    /// The delay of the empty path for which this was learnt.
    empty: Option<Duration>,
    /// The latest round-trip sample.
    rtt: Option<Duration>,
    /// Samples in a row without a queue.
    clear: u32,
    /// The decaying maximum of the delay above that of the empty path, without the receiver's acknowledgment delay.
    largest_queue: Duration,
    /// Bytes lost in this round, and those of them beside packets that met a queue.
    lost: u64,
    queued: u64,
}

impl Default for RandomLoss {
    fn default() -> Self {
        Self {
            share: 0.0,
            packets: ARRIVED_BEFORE,
            in_rows: 0.0,
            rows: LostRows::default(),
            empty: None,
            rtt: None,
            clear: 0,
            largest_queue: Duration::ZERO,
            lost: 0,
            queued: 0,
        }
    }
}

impl RandomLoss {
    /// The random loss rate.
    pub(super) fn share(&self) -> f64 {
        self.share.min(LARGEST_SHARE)
    }

    /// Begins with the random loss rate of another connection.
    pub(super) fn seed(&mut self, share: f64) {
        let counted = (self.packets - ARRIVED_BEFORE).max(0.0);
        self.packets = SEEDED + counted;
        self.share = (share.min(LARGEST_SHARE) * SEEDED + self.share * counted) / self.packets;
    }

    /// Counts packets that found no queue, as arrived or lost.
    fn count(&mut self, packets: f64, lost: bool) {
        self.packets = (self.packets + packets).min(PACKETS);
        let weight = (packets / self.packets).min(1.0);
        self.share += weight * (f64::from(u8::from(lost)) - self.share);
    }

    fn count_row(&mut self, continues: bool) {
        self.in_rows += (f64::from(u8::from(continues)) - self.in_rows) / LOSSES;
    }

    /// Random losses expected among `packets` packets, within `deviations` standard deviations.
    fn explained(&self, packets: f64, deviations: f64) -> f64 {
        let row = self.in_rows.min(LARGEST_ROW);
        let mean = packets * self.share();
        mean + deviations * (mean * (1.0 + row) / (1.0 - row)).sqrt()
    }

    /// Resets the estimate if the empty path is faster than assumed by more than `least`: packets that seemed to find no queue
    /// were in that of other flows, which had filled it before this one began, and were dropped by a full buffer.
    fn correct(&mut self, empty: Duration, least: Duration) {
        let Some(before) = self.empty else {
            self.empty = Some(empty);
            return;
        };
        if before > empty + least {
            self.forget();
            self.empty = Some(empty);
            self.largest_queue = self.largest_queue.max(before - empty);
        }
    }

    /// Forgets what was learnt of losses.
    pub(super) fn forget(&mut self) {
        *self = Self {
            rows: self.rows,
            empty: self.empty,
            rtt: self.rtt,
            largest_queue: self.largest_queue,
            lost: self.lost,
            queued: self.queued,
            ..Self::default()
        };
    }

    /// A round ends. Returns whether most of its losses were beside packets that met a queue.
    pub(super) fn end_round(&mut self) -> bool {
        let (lost, queued) = (self.lost, self.queued);
        (self.lost, self.queued) = (0, 0);
        queued > lost / 2
    }
}

impl Bbr3 {
    /// Whether packets queue at the bottleneck at times: a policer drops them instead.
    pub(super) fn has_queues(&self) -> bool {
        let min = self.min_rtt.get();
        min.is_some_and(|min| self.random_loss.largest_queue > min / QUEUE)
    }

    /// The delay above the path's, `min`, that indicates a queue with a long buffer.
    fn usual_queue(&self, min: Duration) -> Duration {
        let usual = min / QUEUE;
        if !self.config.coexist {
            return usual;
        }
        let bytes = MANAGED_DATAGRAMS.saturating_mul(self.max_datagram_size) as f64;
        let sent_in = bytes / self.bandwidth.get().max(1) as f64;
        usual.min(Duration::from_secs_f64(sent_in).max(MANAGED_QUEUE))
    }

    /// Whether the latest packet met a queue.
    pub(super) fn meets_queue(&self) -> bool {
        let Some((rtt, min)) = self.random_loss.rtt.zip(self.min_rtt.get()) else {
            return false;
        };
        let usual = self.usual_queue(min);
        let queue = match self.has_queues() {
            true => usual.min(self.random_loss.largest_queue.mul_f64(QUEUE_OF_LARGEST)),
            false => usual,
        };
        rtt > min + queue.max(MIN_QUEUE)
    }

    /// Whether packets acknowledged or declared lost now were sent no faster than the model says, or while the path delivered
    /// all packets sent.
    fn is_below_model(&self) -> bool {
        match self.state {
            State::Startup => self.full_pipe.is_growing(),
            State::Drain { .. } | State::ProbeBw(ProbeBwPhase::Up) => false,
            State::ProbeBw(_) | State::ProbeRtt => !self.cycle.is_stopping(),
        }
    }

    fn learns_random_loss(&self) -> bool {
        let least = match self.cross_traffic.is_present() {
            true => CLEAR_BESIDE_OTHERS,
            false => 0,
        };
        !self.meets_queue()
            && self.random_loss.clear >= least
            && self.is_below_model()
            && !self.marks.in_round()
    }

    /// Processes a sample. The peer's reported acknowledgment delay is not part of the largest queue, but it does not decide
    /// whether packets met one.
    pub(super) fn note_queue(&mut self, rtt: &RttView) {
        if let Some(min) = self.min_rtt.get() {
            let least = self.usual_queue(min).max(MIN_QUEUE);
            self.random_loss.correct(min, least);
        }
        let queue = self
            .min_rtt
            .get()
            .map(|min| rtt.adjusted.saturating_sub(min));
        self.random_loss.rtt = Some(rtt.latest);
        let remembered = self.random_loss.largest_queue.mul_f64(LARGEST_QUEUE_KEPT);
        self.random_loss.largest_queue = remembered.max(queue.unwrap_or_default());
        let meets_queue = self.meets_queue();
        self.random_loss.clear = match meets_queue {
            true => 0,
            false => self.random_loss.clear.saturating_add(1),
        };
        self.cross_traffic.on_rtt(rtt.latest, meets_queue);
        self.fast_reprobe.on_rtt(meets_queue);
    }

    /// Counts `bytes` acknowledged.
    pub(super) fn count_arrived(&mut self, bytes: u64) {
        if self.config.random_loss && self.learns_random_loss() {
            let packets = self.datagrams(bytes);
            self.random_loss.count(packets, false);
        }
    }

    /// Counts a lost packet of `bytes`.
    pub(super) fn count_lost(&mut self, packet_number: u64, bytes: u64) {
        let continues = self.random_loss.rows.on_lost(packet_number);
        self.random_loss.lost = self.random_loss.lost.saturating_add(bytes);
        if self.meets_queue() {
            self.random_loss.queued = self.random_loss.queued.saturating_add(bytes);
        } else if self.config.random_loss && self.learns_random_loss() {
            self.random_loss.count(1.0, true);
            self.random_loss.count_row(continues);
        }
    }

    /// Whether `lost` bytes of `in_flight` exceed random loss, by more than `margin` of `in_flight`. Without a queue, few
    /// packets prove nothing.
    pub(super) fn exceeds_random_loss(&self, lost: u64, in_flight: u64, margin: f64) -> bool {
        let least = match self.meets_queue() {
            true => 0.0,
            false => MIN_LOSSES,
        };
        let packets = self.datagrams(in_flight);
        let explained = self.random_loss.explained(packets, DEVIATIONS);
        self.datagrams(lost) > explained + (margin * packets).max(least)
    }

    /// Whether the losses of the round that ends indicate congestion: too many, or, if it `is_queued`, more than usual.
    pub(super) fn is_round_congested(&self, rate: &RateSample, is_queued: bool) -> bool {
        is_queued && self.exceeds_deviations(rate.lost, rate.in_flight_at_send, QUEUED_DEVIATIONS)
            || self.exceeds_random_loss(
                rate.lost,
                rate.in_flight_at_send,
                self.cross_traffic.loss_threshold(),
            )
    }

    /// Whether `lost` bytes of `in_flight` exceed random loss by more than `deviations` standard deviations.
    pub(super) fn exceeds_deviations(&self, lost: u64, in_flight: u64, deviations: f64) -> bool {
        let packets = self.datagrams(in_flight);
        self.datagrams(lost) > self.random_loss.explained(packets, deviations)
    }

    fn datagrams(&self, bytes: u64) -> f64 {
        bytes as f64 / self.max_datagram_size as f64
    }
}
