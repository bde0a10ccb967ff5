//! The outer layer of a path: one path ID with its number space, recovery, connection IDs and send queue.

use std::cmp::Reverse;
use std::time::Duration;

use marline_wire::{ConnectionId, PathId};

use super::{Liveness, LocalCids, Preference, RemoteCids, SendQueue, Tuple, Tuples};
use crate::ack::AckPolicy;
use crate::congestion::Phase;
use crate::coordination::bundle::{Directive, LocalMember, MemberView};
use crate::coordination::careful_resume::{
    CarefulResume, CarefulResumeDriver, ResumeStep, SavedModel,
};
use crate::coordination::history::{PathSample, SampleEvent};
use crate::crypto::TAG_LEN;
use crate::datagrams::DatagramQueue;
use crate::level::SpaceId;
use crate::observe::stats::UdpStats;
use crate::recovery::{Outcome, Recovery, RecoveryConfig};
use crate::scheduling::path::{PathStatus, PathView, RateView};
use crate::spaces::Space;
use crate::time::Instant;
use crate::token::Token;
use crate::tuple::EcnLedger;

/// Number of ACK-only packets before one of them is made ack-eliciting while there are other paths: more than
/// one, so that both ends do not do so endlessly.
const ACKS_BEFORE_PROBE: u32 = 4;

/// Number of them that are made ack-eliciting per round-trip time.
const PROBES_PER_RTT: u32 = 4;

/// Minimum interval between two of those.
const MIN_PAUSE: Duration = Duration::from_millis(25);

/// Stage of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its addresses are being validated for the first time.
    Opening,
    /// It may carry any frames.
    Open,
    /// It is no longer used for sending; packets from the peer are accepted until it is forgotten.
    Abandoned {
        /// `None` as long as the peer may not know of it.
        until: Option<Instant>,
    },
}

/// Counters of a path, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathCounters {
    pub(crate) sent: UdpStats,
    pub(crate) received: UdpStats,
    pub(crate) packets_sent: u64,
    pub(crate) ptos: u64,
    /// Bytes of STREAM frames.
    pub(crate) stream_bytes: u64,
    /// Number of those that another path carried as well.
    pub(crate) stream_bytes_copied: u64,
}

impl PathCounters {
    #[inline]
    pub(crate) fn count_stream(&mut self, bytes: u64, is_copy: bool) {
        self.stream_bytes += bytes;
        if is_copy {
            self.stream_bytes_copied += bytes;
        }
    }
}

/// The connection IDs of a path.
#[derive(Debug)]
pub(crate) struct PathIds {
    pub(crate) local: LocalCids,
    pub(crate) remote: RemoteCids,
    /// Our ID that the peer uses first.
    pub(crate) active_local: ConnectionId,
}

/// `bytes` in each `time`, in bytes per second.
fn bytes_per_second(bytes: u64, time: Duration) -> u64 {
    (bytes as f64 / time.as_secs_f64().max(1e-6)) as u64
}

/// Everything that is kept for each path ID. Without the multipath extension there is one path, 0.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) stage: Stage,
    pub(crate) preference: Preference,
    /// Application data space of this path.
    pub(crate) space: Space<Token>,
    pub(crate) recovery: Recovery,
    pub(crate) ack_policy: Box<dyn AckPolicy>,
    pub(crate) local_cids: LocalCids,
    pub(crate) remote_cids: RemoteCids,
    /// Our ID that the peer used last.
    pub(crate) active_local_cid: ConnectionId,
    pub(crate) tuples: Tuples,
    /// ECN counts, by packet number space.
    pub(crate) ledgers: [EcnLedger; 3],
    pub(crate) queue: SendQueue,
    /// Datagrams that the application has assigned to it.
    pub(crate) datagrams: DatagramQueue,
    /// Failure detection.
    pub(crate) liveness: Liveness,
    /// Careful resume, until it has ended.
    pub(crate) careful_resume: Option<Box<CarefulResumeDriver>>,
    /// Membership in a bundle.
    pub(crate) member: LocalMember,
    /// Phase of the controller last reported to observers.
    pub(crate) reported_phase: Option<Phase>,
    /// ACK-only packets since the last ack-eliciting one.
    pub(crate) acks_alone: u32,
    pub(crate) ping_due: bool,
    /// Packet number to skip.
    pub(crate) skip_at: u64,
    pub(crate) counters: PathCounters,
}

impl Path {
    /// A path with the addresses and the validation state of `tuple`.
    pub(crate) fn new(
        id: PathId,
        ids: PathIds,
        tuple: Tuple,
        recovery: Recovery,
        ack_policy: Box<dyn AckPolicy>,
        skip_at: u64,
    ) -> Self {
        Self {
            id,
            stage: Stage::Open,
            preference: Preference::default(),
            space: Space::new(),
            recovery,
            ack_policy,
            local_cids: ids.local,
            remote_cids: ids.remote,
            active_local_cid: ids.active_local,
            tuples: Tuples::new(tuple),
            ledgers: [EcnLedger::new(); 3],
            queue: SendQueue::default(),
            datagrams: DatagramQueue::default(),
            liveness: Liveness::default(),
            careful_resume: None,
            member: LocalMember::default(),
            reported_phase: None,
            acks_alone: 0,
            ping_due: false,
            skip_at,
            counters: PathCounters::default(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(self.stage, Stage::Abandoned { .. })
    }

    /// Whether the path is open and not suspected.
    pub(crate) fn is_live(&self) -> bool {
        self.is_open() && self.recovery.pto_count() == 0 && !self.liveness.is_suspected()
    }

    /// Whether its latest round trip took as long in queues as on the empty path. Only a rate-based controller keeps queues
    /// so short that this is unusual.
    pub(crate) fn has_long_queue(&self) -> bool {
        let rtt = self.recovery.rtt();
        self.recovery.controller().is_rate_based() && rtt.latest() > rtt.min() * 2
    }

    /// Abandons the path: nothing more is sent on it.
    pub(super) fn abandon(&mut self) {
        self.stage = Stage::Abandoned { until: None };
        self.recovery.stop();
        self.tuples.active.validation = None;
        self.tuples.previous = None;
        self.tuples.probed = None;
        self.remote_cids.retire_all();
    }

    /// Resets recovery and congestion control, because the path leads to another host (RFC 9000, section 9.4).
    pub(crate) fn reset_recovery(&mut self, config: RecoveryConfig) {
        self.recovery.reset(config);
        self.liveness = Liveness::default();
        self.careful_resume = None;
        self.member.forget();
        self.reported_phase = None;
    }

    /// Handles an authenticated packet: a path that does not answer is probed. The direction from the peer
    /// works, and perhaps the other one does too.
    pub(crate) fn on_received(&mut self, now: Instant) {
        self.liveness.on_received(now);
        let pause = self.recovery.rtt().smoothed();
        let last = self.recovery.last_ack_eliciting();
        let is_probed = last.is_some_and(|last| now < last + pause);
        if self.is_open() && !self.is_live() && !is_probed {
            self.recovery.request_probe();
        }
    }

    /// Handles an acknowledgment of packets that the path carried. Returns whether the path answers again
    /// after it did not.
    pub(crate) fn on_answer(&mut self, outcome: &Outcome) -> bool {
        self.liveness.on_acked(self.space.sent.waiting_since());
        if !outcome.proves_path {
            return false;
        }
        let was_failing = outcome.timeouts > 0 || self.liveness.is_suspected();
        self.liveness.on_answer(outcome.timeouts > 0);
        was_failing && self.is_live()
    }

    /// Whether an ACK-only packet is to be made ack-eliciting: an end that sends nothing else has no other
    /// means to detect that its acknowledgments are lost.
    pub(crate) fn wants_ack_of_acks(&self, now: Instant) -> bool {
        let pause = (self.recovery.rtt().smoothed() / PROBES_PER_RTT).max(MIN_PAUSE);
        let last = self.recovery.last_ack_eliciting();
        self.acks_alone >= ACKS_BEFORE_PROBE && last.is_none_or(|last| last + pause <= now)
    }

    /// Time of the last event that refreshes NAT mappings.
    pub(super) fn active_at(&self) -> Instant {
        let received_at = self.liveness.received_at();
        let sent_at = self.recovery.last_ack_eliciting();
        sent_at.map_or(received_at, |sent_at| sent_at.max(received_at))
    }

    /// Passes an event to careful resume, if it is active.
    pub(crate) fn drive_careful_resume(
        &mut self,
        event: impl FnOnce(&mut CarefulResume) -> ResumeStep,
    ) {
        if let Some(careful_resume) = &mut self.careful_resume {
            careful_resume.drive(self.recovery.controller_mut(), event);
            self.pace_careful_resume();
        }
    }

    /// Sets the pacing that Careful Resume requires, if it is active.
    pub(crate) fn pace_careful_resume(&mut self) {
        let careful_resume = self.careful_resume.as_ref();
        let rate = careful_resume.and_then(|careful_resume| careful_resume.pacing_rate());
        self.recovery.set_unvalidated_rate(rate);
    }

    /// Payload size of a 1-RTT packet, in bytes.
    pub(crate) fn payload_room(&self) -> usize {
        let header = 1 + self.remote_cids.active().len() + 4;
        usize::from(self.tuples.active.mtu.current()).saturating_sub(header + TAG_LEN)
    }

    /// Bytes of a 1-RTT packet with the shortest packet number that are not payload.
    pub(crate) fn shortest_overhead(&self) -> usize {
        1 + self.remote_cids.active().len() + 1 + TAG_LEN
    }

    /// Number of probe packets still to be sent, with application data or without.
    pub(crate) fn probes(&self) -> u8 {
        self.recovery.probes(SpaceId::Data)
    }

    /// The measurements of the path, for later connections.
    pub(crate) fn sample(&self, event: SampleEvent) -> PathSample {
        let recovery = &self.recovery;
        let mut sample = PathSample {
            event,
            window: recovery.controller().window(),
            initial_window: recovery.initial_window().bytes,
            rtt: recovery.rtt().min(),
            delivered: recovery.delivered(),
            app_limited: !recovery.was_window_limited(),
            lost_at_first: recovery.had_congestion_at_first(),
            model: recovery.controller().model().as_ref().map(SavedModel::of),
        };
        if let Some(careful_resume) = &self.careful_resume {
            careful_resume.bound(&mut sample);
        }
        sample
    }

    /// Bytes that wait for the path: of segments, and of datagrams.
    fn waiting(&self) -> u64 {
        self.queue.bytes() + self.datagrams.bytes() as u64
    }

    /// The path as its scheduler sees it at `now`.
    pub(crate) fn view(&self, now: Instant) -> PathView {
        let rtt = self.recovery.rtt().view();
        let window = self.recovery.controller().window();
        let in_flight = self.recovery.in_flight();
        let waiting = self.waiting();
        let leaves = waiting.min(window.saturating_sub(in_flight));
        PathView {
            id: self.id,
            status: self.preference.status(),
            smoothed_rtt: self.recovery.rtt().has_sample().then_some(rtt.smoothed),
            rttvar: rtt.variance,
            window,
            in_flight: in_flight + leaves,
            queued: waiting - leaves,
            mtu: self.tuples.active.mtu.current().into(),
            rate: self.rate_view(now),
        }
    }

    fn rate_view(&self, now: Instant) -> Option<RateView> {
        let recovery = &self.recovery;
        let (controller, rtt) = (recovery.controller(), recovery.rtt());
        if !controller.is_rate_based() || !rtt.has_sample() {
            return None;
        }
        let next = self.waiting() + u64::from(self.tuples.active.mtu.current());
        Some(RateView {
            bandwidth: controller
                .bandwidth()
                .unwrap_or_else(|| bytes_per_second(controller.window(), rtt.smoothed()))
                .max(1),
            min_rtt: rtt.min(),
            paced_for: recovery.paced_for(now, next),
        })
    }

    /// Order of preference among paths: smaller is better.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        (
            !self.is_open(),
            // Of those that do not answer, the one that last received a packet.
            (!self.is_live()).then_some(Reverse(self.liveness.received_at())),
            self.preference.status() == PathStatus::Backup,
            self.recovery.rtt().smoothed(),
        )
    }

    /// The view of the path for the engine of its bundle.
    pub(crate) fn member_view(&self) -> MemberView {
        let recovery = &self.recovery;
        let controller = recovery.controller();
        MemberView {
            window: controller.window(),
            datagram: self.tuples.active.mtu.current().into(),
            in_slow_start: controller.in_slow_start(),
            rate_based: controller.is_rate_based(),
            rate: controller.bandwidth(),
            smoothed_rtt: recovery.rtt().smoothed(),
            active: recovery.in_flight() > 0
                && !recovery.is_app_limited()
                && recovery.pto_count() == 0,
        }
    }

    /// Applies a decision of the bundle's engine to the controller.
    pub(crate) fn apply_directive(&mut self, directive: &Directive) {
        if let Some(shared) = &directive.shared {
            let datagram = self.tuples.active.mtu.current().into();
            if self.recovery.share_controller(shared, datagram) {
                self.member.share();
            }
            return;
        }
        self.member
            .apply_directive(directive, self.recovery.controller_mut());
    }

    /// Removes the path from its bundle.
    pub(crate) fn leave_bundle(&mut self) {
        self.member.leave(self.recovery.controller_mut());
    }

    /// Whether frames about the path's connection IDs are due.
    pub(super) fn has_id_frames(&self) -> bool {
        !self.is_abandoned() && (self.local_cids.has_frames() || self.remote_cids.has_frames())
    }
}
