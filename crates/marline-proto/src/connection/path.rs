//! The outer layer of a path: one path ID with its number space, recovery and send queue.

use marline_wire::{ConnectionId, PathId};

use crate::ack::AckPolicy;
use crate::congestion::Phase;
use crate::coordination::bundle::LocalMember;
use crate::coordination::careful_resume::{CarefulResume, Resumption, Step};
use crate::coordination::history::{PathSample, SampleEvent};
use crate::level::SpaceId;
use crate::observe::stats::UdpStats;
use crate::paths::{EcnLedger, Liveness, LocalCids, Preference, RemoteCids, Tuple, Tuples};
use crate::recovery::{Recovery, RecoveryConfig};
use crate::spaces::Space;
use crate::time::Instant;

use super::queue::SendQueue;
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
    /// Whether the path still answers.
    pub(super) liveness: Liveness,
    /// The return to a remembered capacity, until it is over.
    pub(super) resumption: Option<Box<Resumption>>,
    /// The path as a member of a bundle.
    pub(super) member: LocalMember,
    /// The phase of the controller that observers know.
    pub(super) reported_phase: Option<Phase>,
    /// ACK-only packets since the last ack-eliciting one.
    pub(super) acks_alone: u32,
    pub(super) ping_due: bool,
    /// The packet number to leave out.
    pub(super) skip_at: u64,
    pub(super) counters: PathCounters,
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
            liveness: Liveness::default(),
            resumption: None,
            member: LocalMember::default(),
            reported_phase: None,
            acks_alone: 0,
            ping_due: false,
            skip_at,
            counters: PathCounters::default(),
        }
    }

    pub(super) fn is_abandoned(&self) -> bool {
        matches!(self.stage, Stage::Abandoned { .. })
    }

    /// The path leads to another host: the window and everything learnt start anew (RFC 9000, section 9.4).
    pub(super) fn reset_recovery(&mut self, config: RecoveryConfig) {
        self.recovery.reset(config);
        self.liveness = Liveness::default();
        self.resumption = None;
        self.member.forget();
        self.reported_phase = None;
    }

    /// Has the resumption, if there is one, learn of an event.
    pub(super) fn drive_resumption(&mut self, event: impl FnOnce(&mut CarefulResume) -> Step) {
        if let Some(resumption) = &mut self.resumption {
            resumption.drive(self.recovery.controller_mut(), event);
            self.pace_resumption();
        }
    }

    /// Paces the path as its resumption wants it, if there is one.
    pub(super) fn pace_resumption(&mut self) {
        let rate = self
            .resumption
            .as_ref()
            .and_then(|resumption| resumption.pacing_rate());
        self.recovery.set_unvalidated_rate(rate);
    }

    /// Probe packets that are still to be sent, with application data or without.
    pub(super) fn probes(&self) -> u8 {
        self.recovery.probes(SpaceId::Data)
    }

    /// What the path has shown, for connections to come.
    pub(super) fn sample(&self, event: SampleEvent) -> PathSample {
        let recovery = &self.recovery;
        let mut sample = PathSample {
            event,
            window: recovery.controller().window(),
            initial_window: recovery.first_window().bytes,
            rtt: recovery.rtt().min(),
            delivered: recovery.delivered(),
            app_limited: !recovery.was_window_limited(),
            lost_at_first: recovery.had_congestion_at_first(),
        };
        if let Some(resumption) = &self.resumption {
            resumption.bound(&mut sample);
        }
        sample
    }
}
