//! The outer layer of a path: one path ID with its number space, recovery and send queue.

use std::time::Duration;

use marline_wire::{ConnectionId, PathId};

use crate::ack::AckPolicy;
use crate::config::TransportConfig;
use crate::congestion::{Controller, ControllerConfig, ControllerFactory, Pacer, Phase};
use crate::observe::stats::UdpStats;
use crate::paths::{EcnLedger, Liveness, LocalCids, Preference, RemoteCids, Tuple, Tuples};
use crate::recovery::{DeliveryRate, LossDetector, RttEstimator};
use crate::samples::RttView;
use crate::spaces::Space;
use crate::time::Instant;

use super::bundle::Noticed;
use super::history::{FirstFlight, FirstWindow};
use super::queue::SendQueue;
use super::resume::Resume;
use super::token::Token;

/// Where a path stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its addresses are validated for the first time.
    Opening,
    /// It may carry everything.
    Open,
    /// It carries nothing any more; what the peer had sent is still taken until it is forgotten.
    Abandoned {
        /// `None` as long as the peer may not know.
        until: Option<Instant>,
    },
}

/// What a path has carried; nobody but statistics reads it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathCounters {
    pub(super) sent: UdpStats,
    pub(super) received: UdpStats,
    pub(super) packets_sent: u64,
    pub(super) ptos: u64,
    /// Bytes of STREAM frames.
    pub(super) stream_bytes: u64,
    /// Of those, what another path carried, too.
    pub(super) stream_bytes_copied: u64,
}

impl PathCounters {
    #[inline]
    pub(super) fn count_stream(&mut self, bytes: u64, is_copy: bool) {
        self.stream_bytes += bytes;
        if is_copy {
            self.stream_bytes_copied += bytes;
        }
    }
}

/// The connection IDs of a path.
#[derive(Debug)]
pub(super) struct Ids {
    pub(super) local: LocalCids,
    pub(super) remote: RemoteCids,
    /// The ID of ours that the peer uses first.
    pub(super) active_local: ConnectionId,
}

/// Everything that is kept for each path ID. Without the multipath extension there is one path, 0.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: PathId,
    pub(super) stage: Stage,
    pub(super) preference: Preference,
    /// The application data space of this path.
    pub(super) space: Space<Token>,
    pub(super) recovery: Recovery,
    pub(super) ack_policy: Box<dyn AckPolicy>,
    pub(super) local_cids: LocalCids,
    pub(super) remote_cids: RemoteCids,
    /// The ID of ours that the peer used last.
    pub(super) active_local_cid: ConnectionId,
    pub(super) tuples: Tuples,
    /// ECN accounts, by number space.
    pub(super) ledgers: [EcnLedger; 3],
    pub(super) queue: SendQueue,
    /// The first packet number whose acknowledgment ends the present round of its bundle.
    pub(super) round_ends: u64,
    /// ACK-only packets since the last ack-eliciting one.
    pub(super) acks_alone: u32,
    pub(super) ping_due: bool,
    /// The packet number to leave out.
    pub(super) skip_at: u64,
    pub(super) counters: PathCounters,
}

/// Loss recovery and congestion control of one path (RFC 9002).
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) rtt: RttEstimator,
    pub(super) controller: Box<dyn Controller>,
    pub(super) detector: Box<dyn LossDetector>,
    pub(super) pacer: Option<Pacer>,
    pub(super) rate: DeliveryRate,
    pub(super) in_flight: u64,
    pub(super) pto_count: u32,
    pub(super) liveness: Liveness,
    /// Whether data, not the window or the pacer, ran out when we last sent.
    pub(super) app_limited: bool,
    /// When nothing was in flight any more.
    pub(super) idle_since: Option<Instant>,
    /// When the loss detection timer fires.
    pub(super) timer: Option<Instant>,
    /// When the pacer lets the next packet go.
    pub(super) paced_until: Option<Instant>,
    /// When the first round-trip sample came: losses before say nothing about persistent congestion.
    pub(super) first_sample_at: Option<Instant>,
    /// The 4-tuple before this one, if it led to the same host: what it taught still holds.
    pub(super) former_tuple: Option<u32>,
    pub(super) epoch: LossEpoch,
    pub(super) lost_packets: u64,
    pub(super) lost_bytes: u64,
    /// Packets reported as marked Congestion Experienced.
    pub(super) ecn_ce: u64,
    pub(super) spurious_losses: u64,
    pub(super) congestion_events: u64,
    /// For those that come after.
    pub(super) first_flight: FirstFlight,
    /// Whether the network has told of congestion.
    pub(super) suffered: bool,
    /// Whether the window ever held data back.
    pub(super) window_limited: bool,
    /// Bytes that `rate` counted on other ways before this one.
    pub(super) delivered_elsewhere: u64,
    /// The return to a remembered capacity, until it is over.
    pub(super) resume: Option<Box<Resume>>,
    /// For the engine of the connection's bundle.
    pub(super) noticed: Noticed,
    /// The phase last told to observers.
    pub(super) told_phase: Option<Phase>,
}

/// The losses that made the controller reduce its window last, to notice when all were spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEpoch {
    pub(super) began: Option<Instant>,
    pub(super) newest_sent_at: Instant,
    pub(super) unexplained: u64,
}

impl Recovery {
    pub(super) fn new(
        (config, controllers): (&TransportConfig, &dyn ControllerFactory),
        first: FirstWindow,
        max_datagram_size: u64,
        seed: u64,
    ) -> Self {
        let controller = controllers.build(ControllerConfig {
            initial_window: first.bytes,
            max_datagram_size,
            slow_start_exit: (config.slow_start_exit)(),
            backoff: config.backoff,
            seed,
        });
        Self {
            rtt: RttEstimator::new(config.initial_rtt),
            controller,
            detector: (config.loss_detector)(),
            pacer: config.pacing.then(|| Pacer::new(max_datagram_size)),
            rate: DeliveryRate::default(),
            in_flight: 0,
            pto_count: 0,
            liveness: Liveness::default(),
            app_limited: true,
            idle_since: None,
            timer: None,
            paced_until: None,
            first_sample_at: None,
            former_tuple: None,
            epoch: LossEpoch::default(),
            lost_packets: 0,
            lost_bytes: 0,
            ecn_ce: 0,
            spurious_losses: 0,
            congestion_events: 0,
            first_flight: FirstFlight::new(first),
            suffered: false,
            window_limited: false,
            delivered_elsewhere: 0,
            resume: None,
            noticed: Noticed::default(),
            told_phase: None,
        }
    }

    /// Whether the window has room for `bytes` more (RFC 9002, section 7).
    pub(super) fn has_window(&self, bytes: u64) -> bool {
        self.in_flight + bytes <= self.controller.window()
    }

    /// How fast packets leave, in bytes per second. A window of which nothing has shown yet that it fits
    /// takes a round trip, be it the first one or that of careful resume.
    pub(super) fn pacing_rate(&self) -> u64 {
        let rtt = self.rtt.view();
        self.unproven_rate(&rtt)
            .unwrap_or_else(|| self.controller.pacing_rate(&rtt))
    }

    fn unproven_rate(&self, rtt: &RttView) -> Option<u64> {
        let resumes = self.resume.as_ref().and_then(|resume| resume.pacing_rate());
        resumes.or_else(|| self.first_flight.pacing_rate(rtt, self.controller.window()))
    }

    /// Whether window and pacer let `bytes` leave now; notes until when the pacer does not.
    pub(super) fn may_send(&mut self, now: Instant, bytes: u64) -> bool {
        self.paced_until = None;
        if !self.has_window(bytes) {
            return false;
        }
        self.paced_until = self.next_send(now, bytes);
        self.paced_until.is_none()
    }

    fn next_send(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        let rtt = self.rtt.view();
        let unproven = self.unproven_rate(&rtt);
        let pacer = self.pacer.as_mut()?;
        match unproven {
            Some(rate) => pacer.next_send_spread(now, rate, bytes),
            None => pacer.next_send(now, self.controller.pacing_rate(&rtt), bytes),
        }
    }

    /// The probe timeout without backoff, for a peer that holds back ACKs for `max_ack_delay`.
    pub(super) fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.rtt.pto_base() + max_ack_delay
    }
}

impl Path {
    /// A path that is open, between addresses of which `tuple` says what is known.
    pub(super) fn new(
        id: PathId,
        ids: Ids,
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
            round_ends: 0,
            acks_alone: 0,
            ping_due: false,
            skip_at,
            counters: PathCounters::default(),
        }
    }

    pub(super) fn is_abandoned(&self) -> bool {
        matches!(self.stage, Stage::Abandoned { .. })
    }

    /// The window and everything learnt start anew (RFC 9000, section 9.4).
    pub(super) fn reset_recovery(
        &mut self,
        kinds: (&TransportConfig, &dyn ControllerFactory),
        first: FirstWindow,
        seed: u64,
    ) {
        let max_datagram_size = self.tuples.active.mtu.current().into();
        let old = &mut self.recovery;
        self.recovery = Recovery {
            in_flight: old.in_flight,
            delivered_elsewhere: old.rate.delivered(),
            // Packets on the way remember how far it had counted.
            rate: std::mem::take(&mut old.rate),
            lost_packets: old.lost_packets,
            lost_bytes: old.lost_bytes,
            ecn_ce: old.ecn_ce,
            spurious_losses: old.spurious_losses,
            congestion_events: old.congestion_events,
            ..Recovery::new(kinds, first, max_datagram_size, seed)
        };
    }
}
