//! The state of recovery and its interface. ACK processing is in [`super::ack`], loss detection in
//! [`super::detect`].

use std::collections::VecDeque;
use std::time::Duration;

use super::budget::Budget;
use super::epoch::LossEpoch;
use super::first_flight::{FirstFlight, InitialWindowChoice};
use super::loss::LossDetector;
use super::persistent::LossPeriod;
use super::resolved::{Resolved, ResolvedToken};
use super::rtt::RttEstimator;
use super::timers::{ArmedTimer, Expired, PROBES, ProbeConditions, Timers};
use crate::congestion::{Controller, DeliveryRate, Pacer};
use crate::coordination::bundle::{Joins, SharedController};
use crate::level::SpaceId;
use crate::limits::FORMER_TUPLES;
use crate::samples::SentSample;
use crate::spaces::{Sent, SentPacket};
use crate::time::Instant;

/// The initial parameters of a path's recovery.
#[derive(Debug)]
pub(crate) struct RecoveryConfig {
    /// Round-trip time assumed until the first sample.
    pub(crate) initial_rtt: Duration,
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) detector: Box<dyn LossDetector>,
    /// `None` if packets are not paced.
    pub(crate) pacer: Option<Pacer>,
    pub(crate) initial_window: InitialWindowChoice,
    /// Whether both probes of a timeout repeat application data.
    pub(crate) two_probes: bool,
}

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingPacket {
    pub(crate) space: SpaceId,
    /// Size without UDP and IP headers, in bytes.
    pub(crate) size: u16,
    pub(crate) ack_eliciting: bool,
    /// Whether it counts towards bytes in flight.
    pub(crate) in_flight: bool,
    /// Whether its datagram is marked with ECT.
    pub(crate) ecn: bool,
    /// Whether it is a PMTU probe.
    pub(crate) mtu_probe: bool,
    /// Generation of its 4-tuple.
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
    /// Packets reported as Congestion Experienced.
    pub(crate) ecn_ce: u64,
    pub(crate) spurious_losses: u64,
    /// Loss epochs, including those started by CE marks.
    pub(crate) congestion_events: u64,
    /// Reductions reverted by the controller.
    pub(crate) undone_reductions: u64,
}

/// The latest 4-tuples before the active one that led to the same host: acknowledgments, losses and CE marks of
/// their packets still count.
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
    /// Loss periods by packet number space, for persistent congestion.
    pub(super) loss_periods: [LossPeriod; 3],
    /// Time of the first RTT sample.
    pub(super) first_sample_at: Option<Instant>,
    pub(super) counters: RecoveryCounters,
    pub(super) former_tuples: FormerTuples,
    two_probes: bool,
    /// Whether packets were lost or CE-marked.
    had_congestion: bool,
    /// Bytes that `rate` counted before the path changed to the present host.
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

    /// Resets the window and all estimates, because the path leads to another host (RFC 9000, section 9.4).
    /// Packets in flight and totals still count.
    pub(crate) fn reset(&mut self, config: RecoveryConfig) {
        let fresh = Self::new(config);
        *self = Self {
            budget: fresh.budget.with_in_flight(self.in_flight()),
            timers: self.timers.restarted(),
            // Packets in flight contain its counters.
            rate: self.rate,
            delivered_before: self.rate.delivered(),
            epoch: self.epoch.restarted(),
            counters: self.counters,
            ..fresh
        };
    }

    /// Records a packet sent with the next number of its space and the tokens that were pushed to
    /// `sent`. Returns the sample passed to the controller, if the packet counts as in flight.
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

    /// Whether window and pacer permit a datagram of `bytes` now. If only the pacer does not,
    /// [`Self::paced_until`] returns the time when it will.
    pub(crate) fn may_send(&mut self, now: Instant, bytes: u64) -> bool {
        self.budget.may_send(now, bytes, &self.rtt.view())
    }

    /// Whether the window permits `bytes` more (RFC 9002, section 7).
    pub(crate) fn has_window(&self, bytes: u64) -> bool {
        self.budget.has_window(bytes)
    }

    /// Time at which the pacer permits the next packet, if it blocked the last one.
    pub(crate) fn paced_until(&self) -> Option<Instant> {
        self.budget.paced_until()
    }

    /// How long the pacer holds back a packet, if it is the last of `bytes` that leave from `now` on.
    pub(crate) fn paced_for(&self, now: Instant, bytes: u64) -> Duration {
        self.budget.paced_for(now, bytes, &self.rtt.view())
    }

    /// The application has nothing more to send, though window and pacer would let it.
    pub(crate) fn on_app_limited(&mut self) {
        self.budget.set_app_limited(true);
        self.rate.on_app_limited(self.budget.in_flight());
    }

    /// Called when window or pacer permit no more. If no data is `waiting`, no pacing timer is set.
    pub(crate) fn on_congestion_limited(&mut self, waiting: bool) {
        self.budget.set_app_limited(false);
        if !waiting {
            self.budget.stop_pacing();
        }
    }

    /// Called when data waits that the window does not permit.
    pub(crate) fn on_window_limited(&mut self) {
        self.budget.set_window_limited();
    }

    /// Whether the window ever limited sending.
    pub(crate) fn was_window_limited(&self) -> bool {
        self.budget.is_window_limited()
    }

    /// Whether the last transmission was limited by the lack of data, not by window or pacer.
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

    /// Joins those that use a `shared` controller. Returns whether it could.
    pub(crate) fn share_controller(&mut self, shared: &SharedController, datagram: u64) -> bool {
        let joins = Joins {
            in_flight: self.in_flight(),
            datagram,
            rate: self.rate,
            rtt: self.rtt.smoothed(),
        };
        shared.add(self.budget.controller_place(), &joins)
    }

    /// Puts a fresh controller in the place of the present one.
    pub(crate) fn replace_controller(&mut self, fresh: Box<dyn Controller>) {
        *self.budget.controller_place() = fresh;
    }

    /// How fast packets leave, in bytes per second; `None` if they are not paced.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        let rtt = self.rtt.view();
        self.budget
            .is_paced()
            .then(|| self.budget.pacing_rate(&rtt))
    }

    /// Sets the pacing rate of an unvalidated window, which overrides that of the controller.
    pub(crate) fn set_unvalidated_rate(&mut self, bytes_per_second: Option<u64>) {
        self.budget.set_unvalidated_rate(bytes_per_second);
    }

    pub(crate) fn counters(&self) -> RecoveryCounters {
        self.counters
    }

    /// The probe timeout without backoff, for a peer with this `max_ack_delay`.
    pub(crate) fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.rtt.pto() + max_ack_delay
    }

    /// Number of consecutive probe timeouts.
    pub(crate) fn pto_count(&self) -> u32 {
        self.timers.pto_count()
    }

    /// Resets the backoff of probe timeouts, after a validation or a Retry.
    pub(crate) fn reset_pto_count(&mut self) {
        self.timers.reset_pto_count();
    }

    /// Number of probe packets still to be sent in a space.
    pub(crate) fn probes(&self, space: SpaceId) -> u8 {
        self.timers.probes(space)
    }

    /// Whether a probe is to be sent in any space.
    pub(crate) fn is_probing(&self) -> bool {
        SpaceId::ALL.into_iter().any(|space| self.probes(space) > 0)
    }

    /// Makes one ack-eliciting probe due, unless one is due already.
    pub(crate) fn request_probe(&mut self) {
        self.timers.request_probe(SpaceId::Data);
    }

    /// Makes the probes of a timeout due, regardless of their content.
    pub(crate) fn request_probes(&mut self) {
        self.timers.request_probes(SpaceId::Data);
    }

    /// Send time of the last ack-eliciting packet of application data.
    pub(crate) fn last_ack_eliciting(&self) -> Option<Instant> {
        self.timers.last_ack_eliciting(SpaceId::Data)
    }

    /// Send time of the last ack-eliciting packet in `space`.
    pub(crate) fn last_ack_eliciting_in(&self, space: SpaceId) -> Option<Instant> {
        self.timers.last_ack_eliciting(space)
    }

    /// Time at which the loss detection timer expires.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.armed().map(|timer| timer.at)
    }

    /// The loss detection timer and its reason; `None` if it is not set.
    pub(crate) fn armed_timer(&self) -> Option<ArmedTimer> {
        self.timers.armed()
    }

    /// Sets the loss detection timer (RFC 9002, appendix A.8). Without `conditions` the path may not send, and
    /// is not probed.
    pub(crate) fn set_timer(&mut self, now: Instant, conditions: Option<&ProbeConditions>) {
        self.timers
            .set(now, self.rtt.pto(), self.budget.idle_since(), conditions);
    }

    /// Handles expiry of the loss detection timer (RFC 9002, appendix A.9): returns its reason. The
    /// caller must then [detect losses](Self::detect_lost), or send probes.
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        conditions: Option<&ProbeConditions>,
    ) -> Option<Expired> {
        self.timers
            .on_timeout(now, self.rtt.pto(), self.budget.idle_since(), conditions)
    }

    /// Makes frames of `space` due for the probes after a probe timeout of `expired`. The data space repeats
    /// its oldest packets (RFC 9002, section 6.2.4). The handshake spaces repeat everything: their flights are
    /// short, are sent and lost together, and each further timeout would be twice as long.
    pub(crate) fn probe<T: Clone>(
        &mut self,
        expired: SpaceId,
        space: SpaceId,
        sent: &Sent<T>,
        resolved: &mut Resolved<T>,
    ) {
        let is_early = space != SpaceId::Data;
        // A server may also be waiting for packets of the other handshake space.
        if space == expired || is_early && sent.has_ack_eliciting_in_flight() {
            let packets = match (is_early, self.two_probes) {
                (true, _) => usize::MAX,
                (false, true) => usize::from(PROBES),
                (false, false) => 1,
            };
            sent.oldest_outstanding(packets, |token| resolved.push_due(token));
            self.timers.request_probes(space);
        }
    }

    /// Discards the state of a packet number space whose keys are discarded (RFC 9002, section 6.4).
    pub(crate) fn on_space_discarded<T>(&mut self, space: SpaceId, sent: &mut Sent<T>) {
        self.discard_packets(sent);
        self.timers.discard(space);
        self.timers.reset_pto_count();
    }

    /// Discards the outstanding packets of a space, without acknowledgment or loss.
    pub(crate) fn discard_packets<T>(&mut self, sent: &mut Sent<T>) {
        let mut bytes = 0;
        sent.discard(|packet| bytes += packet.bytes_in_flight());
        self.budget.release(bytes);
    }

    /// Makes all outstanding frames of a space due again without a congestion event: after a Retry packet
    /// the server has processed none of them.
    pub(crate) fn on_retry<T: Clone>(&mut self, sent: &mut Sent<T>, resolved: &mut Resolved<T>) {
        let mut bytes = 0;
        sent.lose_while(
            u64::MAX,
            |_, _| Some(()),
            |lost, ()| {
                bytes += lost.packet.bytes_in_flight();
                let tokens = lost.tokens.cloned().map(ResolvedToken::Due);
                resolved.tokens.extend(tokens);
                None
            },
        );
        self.budget.release(bytes);
        sent.discard(|_| {});
    }

    /// Stops all timers, because the path is no longer used.
    pub(crate) fn stop(&mut self) {
        self.timers.stop();
        self.budget.stop_pacing();
    }

    /// Sets the datagram size, in bytes.
    pub(crate) fn on_mtu(&mut self, size: u16) {
        self.budget.on_mtu(size);
    }

    /// Handles a change of the 4-tuple to the same host: packets on the `former` one still count (RFC 9000,
    /// section 9.4).
    pub(crate) fn on_rebinding(&mut self, former: u32) {
        self.former_tuples.push(former);
    }

    /// Whether the acknowledgment, loss or CE mark of `packet` counts for the present path.
    pub(super) fn is_of_path(&self, packet: &SentPacket, active: u32) -> bool {
        self.former_tuples.is_of_path(packet, active)
    }

    /// Records that a packet sent at `sent_at` was lost or CE-marked.
    pub(super) fn note_congestion(&mut self, sent_at: Instant) {
        self.had_congestion = true;
        self.budget.first_flight_mut().on_congestion(sent_at);
    }

    /// Whether packets were lost or CE-marked.
    pub(crate) fn had_congestion(&self) -> bool {
        self.had_congestion
    }

    /// The initial window of the path.
    pub(crate) fn initial_window(&self) -> InitialWindowChoice {
        self.budget.first_flight().window()
    }

    /// Sets the initial window once it is known, unless the path has seen congestion, or its window is already larger.
    pub(crate) fn learn_initial_window(&mut self, bytes: u64) {
        let opened = self.controller().window();
        if bytes > opened.max(self.initial_window().bytes) && !self.had_congestion {
            self.controller_mut().set_window(bytes);
            self.budget.first_flight_mut().set_window(bytes);
        }
    }

    /// Reverts a migration: drops the window learned for the other host.
    pub(crate) fn return_to(&mut self, first: InitialWindowChoice) -> bool {
        let returns = self.initial_window().is_learnt() && first.bytes < self.controller().window();
        if returns {
            self.controller_mut().set_window(first.bytes);
            *self.budget.first_flight_mut() = FirstFlight::new(first);
        }
        returns
    }

    /// Whether any packet of the first initial window was lost or CE-marked.
    pub(crate) fn had_congestion_at_first(&self) -> bool {
        self.budget.first_flight().had_congestion()
    }

    /// Bytes acknowledged since the last migration to another host.
    pub(crate) fn delivered(&self) -> u64 {
        self.rate.delivered() - self.delivered_before
    }
}
