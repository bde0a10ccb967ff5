//! The state of recovery, and what is asked of it. What changes it most is in [`super::ack`] and
//! [`super::detect`].

use std::collections::VecDeque;
use std::time::Duration;

use super::Context;
use super::budget::Budget;
use super::delivery_rate::DeliveryRate;
use super::epoch::LossEpoch;
use super::first_flight::{FirstFlight, InitialWindowChoice};
use super::loss::LossDetector;
use super::persistent::LossPeriod;
use super::rtt::RttEstimator;
use super::timers::{ArmedTimer, Expired, PROBES, ProbeConditions, Timers};
use crate::congestion::{Controller, Pacer};
use crate::level::SpaceId;
use crate::limits::FORMER_TUPLES;
use crate::samples::SentSample;
use crate::spaces::{Sent, SentPacket};
use crate::time::Instant;

/// What a path's recovery begins with.
#[derive(Debug)]
pub(crate) struct RecoveryConfig {
    /// Assumed until the first sample.
    pub(crate) initial_rtt: Duration,
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) detector: Box<dyn LossDetector>,
    /// `None` if packets leave as fast as the window lets them.
    pub(crate) pacer: Option<Pacer>,
    pub(crate) initial_window: InitialWindowChoice,
    /// Whether both probes of a timeout repeat application data.
    pub(crate) two_probes: bool,
}

/// A packet that is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingPacket {
    pub(crate) space: SpaceId,
    /// Bytes on the wire, without UDP and IP headers.
    pub(crate) size: u16,
    pub(crate) ack_eliciting: bool,
    /// Whether it counts towards bytes in flight.
    pub(crate) in_flight: bool,
    /// Whether its datagram is marked ECT.
    pub(crate) ecn: bool,
    /// Whether it only probes for a larger datagram size.
    pub(crate) mtu_probe: bool,
    /// The generation of the 4-tuple that it takes.
    pub(crate) tuple: u32,
}

impl OutgoingPacket {
    fn bytes_in_flight(&self) -> u64 {
        match self.in_flight {
            true => self.size.into(),
            false => 0,
        }
    }
}

/// Totals for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecoveryCounters {
    pub(crate) lost_packets: u64,
    pub(crate) lost_bytes: u64,
    /// Packets reported as marked Congestion Experienced.
    pub(crate) ecn_ce: u64,
    pub(crate) spurious_losses: u64,
    /// Loss epochs, those that marks began included.
    pub(crate) congestion_events: u64,
    /// Reductions that the controller took back.
    pub(crate) undone_reductions: u64,
}

/// The latest 4-tuples before the active one that led to the same host: acknowledgments, losses and marks of their
/// packets still count.
#[derive(Debug, Default)]
pub(super) struct FormerTuples(VecDeque<u32>);

impl FormerTuples {
    fn push(&mut self, former: u32) {
        if self.0.len() == FORMER_TUPLES {
            self.0.pop_front();
        }
        self.0.push_back(former);
    }

    /// Whether `packet` was sent on the `active` 4-tuple, or on one before a NAT rebinding.
    pub(super) fn is_of_path(&self, packet: &SentPacket, active: u32) -> bool {
        packet.tuple == active || self.0.contains(&packet.tuple)
    }
}

/// Loss recovery and congestion control of one path.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(super) rtt: RttEstimator,
    pub(super) budget: Budget,
    pub(super) detector: Box<dyn LossDetector>,
    pub(super) rate: DeliveryRate,
    pub(super) timers: Timers,
    pub(super) epoch: LossEpoch,
    /// By number space: what may become persistent congestion.
    pub(super) loss_periods: [LossPeriod; 3],
    /// When the first round-trip sample came.
    pub(super) first_sample_at: Option<Instant>,
    pub(super) counters: RecoveryCounters,
    pub(super) former_tuples: FormerTuples,
    two_probes: bool,
    /// Whether packets were lost or marked.
    had_congestion: bool,
    /// Bytes that `rate` counted before the path led where it leads now.
    delivered_before: u64,
}

impl Recovery {
    pub(crate) fn new(config: RecoveryConfig) -> Self {
        Self {
            rtt: RttEstimator::new(config.initial_rtt),
            budget: Budget::new(config.controller, config.pacer, config.initial_window),
            detector: config.detector,
            rate: DeliveryRate::default(),
            timers: Timers::default(),
            epoch: LossEpoch::default(),
            loss_periods: [LossPeriod::default(); 3],
            first_sample_at: None,
            counters: RecoveryCounters::default(),
            former_tuples: FormerTuples::default(),
            two_probes: config.two_probes,
            had_congestion: false,
            delivered_before: 0,
        }
    }

    /// The path leads to another host: the window and everything learnt start anew (RFC 9000, section 9.4).
    /// What is in flight still counts, and so do totals.
    pub(crate) fn reset(&mut self, config: RecoveryConfig) {
        let fresh = Self::new(config);
        *self = Self {
            budget: fresh.budget.with_in_flight(self.in_flight()),
            timers: self.timers.restarted(),
            // Packets in flight remember how far it had counted.
            rate: self.rate,
            delivered_before: self.rate.delivered(),
            epoch: self.epoch.restarted(),
            counters: self.counters,
            ..fresh
        };
    }

    /// A packet leaves under the next number of its space, with the tokens that were pushed to `sent`.
    /// Returns the sample passed to the controller, if the packet counts as in flight.
    pub(crate) fn on_sent<T>(
        &mut self,
        now: Instant,
        outgoing: &OutgoingPacket,
        sent: &mut Sent<T>,
    ) -> Option<SentSample> {
        let number = sent.commit(SentPacket {
            sent_at: now,
            size: outgoing.size,
            ack_eliciting: outgoing.ack_eliciting,
            in_flight: outgoing.in_flight,
            ecn: outgoing.ecn,
            mtu_probe: outgoing.mtu_probe,
            tuple: outgoing.tuple,
            rate: self
                .rate
                .on_sent(now, self.budget.in_flight(), outgoing.bytes_in_flight()),
            counted_by: None,
        });
        if outgoing.ack_eliciting {
            self.timers.on_ack_eliciting_sent(now, outgoing.space);
        }
        let bytes = outgoing.size.into();
        outgoing
            .in_flight
            .then(|| self.budget.on_sent(now, number, bytes, &self.rtt.view()))
    }

    /// Whether window and pacer let a datagram of `bytes` leave now. If only the pacer does not,
    /// [`Self::paced_until`] says when it will.
    pub(crate) fn may_send(&mut self, now: Instant, bytes: u64) -> bool {
        self.budget.may_send(now, bytes, &self.rtt.view())
    }

    /// Whether the window has room for `bytes` more (RFC 9002, section 7).
    pub(crate) fn has_window(&self, bytes: u64) -> bool {
        self.budget.has_window(bytes)
    }

    /// When the pacer lets the next packet go, if it was what stopped the last one.
    pub(crate) fn paced_until(&self) -> Option<Instant> {
        self.budget.paced_until()
    }

    /// The application has nothing more to send, though window and pacer would let it.
    pub(crate) fn on_app_limited(&mut self) {
        self.budget.set_app_limited(true);
        self.rate.on_app_limited(self.budget.in_flight());
    }

    /// Window or pacer allow nothing more to be sent. If nothing is `waiting`, no pacing timer is set.
    pub(crate) fn on_congestion_limited(&mut self, waiting: bool) {
        self.budget.set_app_limited(false);
        if !waiting {
            self.budget.stop_pacing();
        }
    }

    /// Data waits that the window does not let leave.
    pub(crate) fn on_window_limited(&mut self) {
        self.budget.set_window_limited();
    }

    /// Whether the window ever held data back.
    pub(crate) fn was_window_limited(&self) -> bool {
        self.budget.is_window_limited()
    }

    /// Whether data, not the window or the pacer, ran out when something was last sent.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.budget.is_app_limited()
    }

    /// Bytes in flight (RFC 9002, appendix B.2).
    pub(crate) fn in_flight(&self) -> u64 {
        self.budget.in_flight()
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(crate) fn detector(&self) -> &dyn LossDetector {
        &*self.detector
    }

    pub(crate) fn controller(&self) -> &dyn Controller {
        self.budget.controller()
    }

    /// The controller, for bundles and careful resume.
    pub(crate) fn controller_mut(&mut self) -> &mut dyn Controller {
        self.budget.controller_mut()
    }

    /// How fast packets leave, in bytes per second; `None` if they are not paced.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        let rtt = self.rtt.view();
        self.budget
            .is_paced()
            .then(|| self.budget.pacing_rate(&rtt))
    }

    /// Paces packets at this rate, whatever the controller says: nothing has shown yet that the window fits.
    pub(crate) fn set_unvalidated_rate(&mut self, bytes_per_second: Option<u64>) {
        self.budget.set_unvalidated_rate(bytes_per_second);
    }

    pub(crate) fn counters(&self) -> RecoveryCounters {
        self.counters
    }

    /// The probe timeout without backoff, for a peer that holds back ACKs for `max_ack_delay`.
    pub(crate) fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.rtt.pto() + max_ack_delay
    }

    /// Probe timeouts since the path last answered.
    pub(crate) fn pto_count(&self) -> u32 {
        self.timers.pto_count()
    }

    /// Resets the backoff of probe timeouts, after a validation or a Retry.
    pub(crate) fn reset_pto_count(&mut self) {
        self.timers.reset_pto_count();
    }

    /// Probe packets that are still to be sent in a space.
    pub(crate) fn probes(&self, space: SpaceId) -> u8 {
        self.timers.probes(space)
    }

    /// Whether any space is to send probes.
    pub(crate) fn is_probing(&self) -> bool {
        SpaceId::ALL.into_iter().any(|space| self.probes(space) > 0)
    }

    /// Has a packet sent that asks for an answer, unless one is due already.
    pub(crate) fn request_probe(&mut self) {
        self.timers.request_probe(SpaceId::Data);
    }

    /// Has the probes of a timeout sent, whatever they carry.
    pub(crate) fn request_probes(&mut self) {
        self.timers.request_probes(SpaceId::Data);
    }

    /// When the last ack-eliciting packet of application data left.
    pub(crate) fn last_ack_eliciting(&self) -> Option<Instant> {
        self.timers.last_ack_eliciting(SpaceId::Data)
    }

    /// The same of a packet in `space`.
    pub(crate) fn last_ack_eliciting_in(&self, space: SpaceId) -> Option<Instant> {
        self.timers.last_ack_eliciting(space)
    }

    /// When the loss detection timer fires.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.armed().map(|timer| timer.at)
    }

    /// The loss detection timer, and what it fires for; `None` if it is not set.
    pub(crate) fn armed_timer(&self) -> Option<ArmedTimer> {
        self.timers.armed()
    }

    /// Sets the loss detection timer (RFC 9002, appendix A.8). Without `conditions` the path may not send, and
    /// is not probed.
    pub(crate) fn set_timer(&mut self, now: Instant, conditions: Option<&ProbeConditions>) {
        self.timers
            .set(now, self.rtt.pto(), self.budget.idle_since(), conditions);
    }

    /// The loss detection timer has fired (RFC 9002, appendix A.9): says for what. Losses are to be
    /// [detected](Self::detect_lost), probes to be sent.
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        conditions: Option<&ProbeConditions>,
    ) -> Option<Expired> {
        self.timers
            .on_timeout(now, self.rtt.pto(), self.budget.idle_since(), conditions)
    }

    /// The probe timeout of `expired` is over: has `space` repeat what it must in the probes, if any. The data
    /// space repeats what has waited longest (RFC 9002, section 6.2.4). Of the handshake all is repeated, in
    /// both spaces: its flights are short, travel together and get lost together, and each further timeout
    /// would be twice as long.
    pub(crate) fn probe<T>(
        &mut self,
        expired: SpaceId,
        space: SpaceId,
        sent: &Sent<T>,
        context: &mut impl Context<T>,
    ) {
        let is_early = space != SpaceId::Data;
        // A server may be waiting for handshake packets from the other early space too.
        if space == expired || is_early && sent.has_ack_eliciting_in_flight() {
            let packets = match (is_early, self.two_probes) {
                (true, _) => usize::MAX,
                (false, true) => usize::from(PROBES),
                (false, false) => 1,
            };
            sent.oldest_outstanding(packets, |token| context.on_token_due(token));
            self.timers.request_probes(space);
        }
    }

    /// A number space and its keys are discarded (RFC 9002, section 6.4).
    pub(crate) fn on_space_discarded<T>(&mut self, space: SpaceId, sent: &mut Sent<T>) {
        self.discard_packets(sent);
        self.timers.discard(space);
        self.timers.reset_pto_count();
    }

    /// Forgets what a space sent, neither acknowledged nor lost.
    pub(crate) fn discard_packets<T>(&mut self, sent: &mut Sent<T>) {
        let mut bytes = 0;
        sent.discard(|packet| bytes += packet.bytes_in_flight());
        self.budget.release(bytes);
    }

    /// Makes all that a space sent due again without a congestion event: after a Retry packet the server has
    /// processed none of it.
    pub(crate) fn on_retry<T>(&mut self, sent: &mut Sent<T>, context: &mut impl Context<T>) {
        let mut bytes = 0;
        sent.lose_while(
            u64::MAX,
            |_, _| true,
            |lost| {
                bytes += lost.packet.bytes_in_flight();
                lost.tokens.for_each(|token| context.on_token_due(token));
                None
            },
        );
        self.budget.release(bytes);
        sent.discard(|_| {});
    }

    /// Nothing is sent on the path any more.
    pub(crate) fn stop(&mut self) {
        self.timers.stop();
        self.budget.stop_pacing();
    }

    /// Datagrams have another size, in bytes.
    pub(crate) fn on_mtu(&mut self, size: u16) {
        self.budget.on_mtu(size);
    }

    /// The path has another 4-tuple that leads to the same host: what packets on the `former` one show still
    /// counts (RFC 9000, section 9.4).
    pub(crate) fn on_rebinding(&mut self, former: u32) {
        self.former_tuples.push(former);
    }

    /// Whether the acknowledgment, loss or mark of `packet` counts for the path as it is.
    pub(super) fn is_of_path(&self, packet: &SentPacket, active: u32) -> bool {
        self.former_tuples.is_of_path(packet, active)
    }

    /// A packet sent at `sent_at` was lost or marked.
    pub(super) fn note_congestion(&mut self, sent_at: Instant) {
        self.had_congestion = true;
        self.budget.first_flight_mut().on_congestion(sent_at);
    }

    /// Whether packets were lost or marked.
    pub(crate) fn had_congestion(&self) -> bool {
        self.had_congestion
    }

    /// The window that the path began with.
    pub(crate) fn initial_window(&self) -> InitialWindowChoice {
        self.budget.first_flight().window()
    }

    /// It has become known which initial window the path may have: begins with that, unless it has seen
    /// congestion already, or opened its window further.
    pub(crate) fn learn_initial_window(&mut self, bytes: u64) {
        let opened = self.controller().window();
        if bytes > opened.max(self.initial_window().bytes) && !self.had_congestion {
            self.controller_mut().set_window(bytes);
            self.budget.first_flight_mut().set_window(bytes);
        }
    }

    /// Undoes a migration: drops the window that was learnt for the other host.
    pub(crate) fn return_to(&mut self, first: InitialWindowChoice) -> bool {
        let returns = self.initial_window().is_learnt() && first.bytes < self.controller().window();
        if returns {
            self.controller_mut().set_window(first.bytes);
            *self.budget.first_flight_mut() = FirstFlight::new(first);
        }
        returns
    }

    /// Whether any of the initial window's worth of bytes was lost, or marked by the network.
    pub(crate) fn had_congestion_at_first(&self) -> bool {
        self.budget.first_flight().had_congestion()
    }

    /// Bytes acknowledged since the last migration to another host.
    pub(crate) fn delivered(&self) -> u64 {
        self.rate.delivered() - self.delivered_before
    }
}
