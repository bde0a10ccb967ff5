//! Reports to observers, and statistics.

mod changes;

use marline_wire::{ErrorCode, PathId, Side};

use super::Connection;
use super::events::ConnectionError;
use crate::ack::Requested;
use crate::congestion::Phase;
use crate::crypto::KeyChange;
use crate::establish::Establishment;
use crate::level::{EncryptionLevel, SpaceId};
use crate::observe::events::{
    AckFrequencyUpdated, CloseTrigger, ClosedWith, CongestionStateUpdated, ConnectionClosed,
    ConnectionState, ConnectionStateUpdated, DropTrigger, EcnState, Event, Initiator, KeyDiscarded,
    KeyKind, KeyTrigger, KeyUpdated, LossTrigger, MetricsUpdated, MigrationState,
    MigrationStateUpdated, PacketDropped, PacketKind, PacketLost, PacketNumberSpace, PacketsAcked,
    PathAssigned, ReassemblyUpdated, SpuriousLoss,
};
use crate::observe::{
    self, ConnectionStats, Observer, PathStage, PathStats,
    stats::{FrameCounts, StreamStats, UdpStats},
};
use crate::paths::Slot;
use crate::paths::{Path, Stage};
use crate::recovery::Resolved;
use crate::recovery::loss::Cause;
use crate::streams::Streams;
use crate::time::Instant;
use crate::token::Token;
use crate::tuple::EcnValidationState;

use changes::ReportedPath;

/// Counters of a connection, for [`ConnectionStats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) datagrams_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) datagrams_received: u64,
    pub(super) bytes_received: u64,
    pub(super) packets_received: u64,
    pub(super) packets_dropped: u64,
    /// Bytes held out of order, as last reported to the observer.
    reported_out_of_order: u64,
}

/// A packet dropped before its frames are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct DroppedPacket {
    /// The path of the packet, if known; the only one without multipath.
    pub(super) path: Option<PathId>,
    /// `None` if its header cannot be parsed.
    pub(super) level: Option<EncryptionLevel>,
    /// Size in bytes.
    pub(super) size: usize,
}

/// The observer of a connection, and its counters.
pub(super) struct Telemetry {
    side: Side,
    pub(super) observer: Option<Box<dyn Observer>>,
    pub(super) counters: Counters,
    pub(super) frames_received: FrameCounts,
    /// The state last reported to the observer.
    reported_state: Option<ConnectionState>,
    /// State of each path last reported.
    reported_paths: Vec<ReportedPath>,
}

impl Telemetry {
    pub(super) fn new(side: Side, observer: Option<Box<dyn Observer>>) -> Self {
        Self {
            side,
            observer,
            counters: Counters::default(),
            frames_received: FrameCounts::default(),
            reported_state: None,
            reported_paths: Vec::new(),
        }
    }

    /// Reports resolved packets of `space` on a path.
    pub(super) fn report_resolved(
        &mut self,
        now: Instant,
        path: PathId,
        space: SpaceId,
        resolved: &Resolved<Token>,
    ) {
        let Some(observer) = &mut self.observer else {
            return;
        };
        for spurious in &resolved.spuriously_lost {
            let event = SpuriousLoss {
                path,
                kind: space.packet_kind(),
                number: spurious.number,
                reordering: spurious.reordering,
                elapsed: spurious.elapsed,
            };
            observer.on_event(now, &Event::SpuriousLoss(event));
        }
        if !resolved.acked.is_empty() {
            let event = PacketsAcked {
                path,
                space: space.number_space(),
                numbers: &resolved.acked,
            };
            observer.on_event(now, &Event::PacketsAcked(event));
        }
        for lost in &resolved.lost {
            let event = PacketLost {
                path,
                kind: space.packet_kind(),
                number: lost.number,
                size: lost.size.into(),
                is_mtu_probe: lost.mtu_probe,
                trigger: match lost.cause {
                    Cause::Packet => LossTrigger::ReorderingThreshold,
                    Cause::Time => LossTrigger::TimeThreshold,
                },
            };
            observer.on_event(now, &Event::PacketLost(event));
        }
    }
}

impl From<EncryptionLevel> for PacketKind {
    fn from(level: EncryptionLevel) -> Self {
        match level {
            EncryptionLevel::Initial => Self::Initial,
            EncryptionLevel::ZeroRtt => Self::ZeroRtt,
            EncryptionLevel::Handshake => Self::Handshake,
            EncryptionLevel::OneRtt => Self::OneRtt,
        }
    }
}

impl SpaceId {
    /// The packet type of the space, as observers see it.
    pub(super) const fn packet_kind(self) -> PacketKind {
        match self {
            Self::Initial => PacketKind::Initial,
            Self::Handshake => PacketKind::Handshake,
            Self::Data => PacketKind::OneRtt,
        }
    }

    /// The packet number space as observers see it.
    pub(super) const fn number_space(self) -> PacketNumberSpace {
        match self {
            Self::Initial => PacketNumberSpace::Initial,
            Self::Handshake => PacketNumberSpace::Handshake,
            Self::Data => PacketNumberSpace::ApplicationData,
        }
    }
}

const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::SlowStart => "slow_start",
        Phase::CongestionAvoidance => "congestion_avoidance",
        Phase::Recovery => "recovery",
        Phase::Startup => "startup",
        Phase::Drain => "drain",
        Phase::ProbeBw => "probe_bw",
        Phase::ProbeRtt => "probe_rtt",
        Phase::ApplicationLimited => "application_limited",
    }
}

impl Telemetry {
    /// Passes an event to the observer, if there is one.
    pub(super) fn emit(&mut self, now: Instant, event: &observe::Event<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.on_event(now, event);
        }
    }

    /// Reports the bytes that streams hold out of order, if they changed.
    pub(super) fn report_reassembly(&mut self, now: Instant, streams: &Streams) {
        let Some(observer) = &mut self.observer else {
            return;
        };
        let out_of_order_bytes = streams.out_of_order_bytes();
        if out_of_order_bytes != self.counters.reported_out_of_order {
            self.counters.reported_out_of_order = out_of_order_bytes;
            let event = ReassemblyUpdated { out_of_order_bytes };
            observer.on_event(now, &observe::Event::ReassemblyUpdated(event));
        }
    }

    /// Reports keys of both directions that were installed or updated.
    pub(super) fn report_keys_installed(
        &mut self,
        now: Instant,
        establishment: &Establishment,
        kind: KeyKind,
        trigger: KeyTrigger,
    ) {
        let phase = establishment.one_rtt().map(|keys| keys.generation());
        let key_phase = phase.filter(|_| kind == KeyKind::OneRtt);
        for sender in [self.side, self.side.peer()] {
            let event = KeyUpdated {
                sender,
                kind,
                key_phase,
                trigger,
            };
            self.emit(now, &observe::Event::KeyUpdated(event));
        }
    }

    pub(super) fn report_key_change(
        &mut self,
        now: Instant,
        establishment: &Establishment,
        change: KeyChange,
    ) {
        let trigger = match change {
            KeyChange::UpdatedByPeer => KeyTrigger::RemoteUpdate,
            KeyChange::Followed => KeyTrigger::LocalUpdate,
        };
        self.report_keys_installed(now, establishment, KeyKind::OneRtt, trigger);
    }

    pub(super) fn report_keys_discarded(&mut self, now: Instant, kind: KeyKind) {
        for sender in [self.side, self.side.peer()] {
            let event = KeyDiscarded {
                sender,
                kind,
                key_phase: None,
                trigger: KeyTrigger::Tls,
            };
            self.emit(now, &observe::Event::KeyDiscarded(event));
        }
    }

    pub(super) fn report_state(&mut self, now: Instant, new: ConnectionState) {
        let old = self.reported_state.replace(new);
        let event = ConnectionStateUpdated { old, new };
        self.emit(now, &observe::Event::ConnectionStateUpdated(event));
    }

    pub(super) fn report_closed(&mut self, now: Instant, error: &ConnectionError) {
        if self.observer.is_none() {
            return;
        }
        let reason = error.to_string();
        let (initiator, error, trigger) = match error {
            ConnectionError::VersionMismatch => (
                Initiator::Local,
                ClosedWith::Nothing,
                CloseTrigger::VersionMismatch,
            ),
            ConnectionError::Transport(error) => (
                Initiator::Local,
                ClosedWith::Transport(error.code),
                CloseTrigger::Error,
            ),
            ConnectionError::PeerTransport { code, .. } => (
                Initiator::Remote,
                ClosedWith::Transport(*code),
                CloseTrigger::Error,
            ),
            ConnectionError::PeerApplication { code, .. } => (
                Initiator::Remote,
                ClosedWith::Application(*code),
                CloseTrigger::Application,
            ),
            ConnectionError::LocallyClosed => (
                Initiator::Local,
                ClosedWith::Nothing,
                CloseTrigger::Application,
            ),
            ConnectionError::Evicted => (
                Initiator::Local,
                ClosedWith::Transport(ErrorCode::NO_ERROR),
                CloseTrigger::IdleTimeout,
            ),
            ConnectionError::EndpointFailed(_)
            | ConnectionError::Unreachable(_)
            | ConnectionError::NetworkLost(_) => {
                (Initiator::Local, ClosedWith::Nothing, CloseTrigger::Error)
            }
            ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout => (
                Initiator::Local,
                ClosedWith::Nothing,
                CloseTrigger::IdleTimeout,
            ),
            ConnectionError::Reset => (
                Initiator::Remote,
                ClosedWith::Nothing,
                CloseTrigger::StatelessReset,
            ),
        };
        let event = ConnectionClosed {
            initiator,
            error,
            reason: &reason,
            trigger,
        };
        self.emit(now, &observe::Event::ConnectionClosed(event));
    }

    #[cold]
    pub(super) fn report_dropped(
        &mut self,
        now: Instant,
        dropped: DroppedPacket,
        trigger: DropTrigger,
    ) {
        self.counters.packets_dropped += 1;
        if let Some(observer) = &mut self.observer {
            let event = PacketDropped {
                path: dropped.path,
                kind: dropped.level.map_or(PacketKind::Unknown, PacketKind::from),
                size: dropped.size,
                trigger,
            };
            observer.on_event(now, &observe::Event::PacketDropped(event));
        }
    }

    pub(super) fn report_migration(&mut self, now: Instant, path: &Path, new: MigrationState) {
        let event = MigrationStateUpdated {
            path: path.id,
            old: None,
            new,
        };
        self.emit(now, &observe::Event::MigrationStateUpdated(event));
    }

    pub(super) fn report_path(&mut self, now: Instant, path: &Path) {
        let addresses = path.tuples.active.addresses;
        let event = PathAssigned {
            path: path.id,
            local: Some(addresses.local),
            remote: Some(addresses.remote),
        };
        self.emit(now, &observe::Event::PathAssigned(event));
    }

    pub(super) fn report_path_removed(&mut self, now: Instant, id: PathId) {
        let event = PathAssigned {
            path: id,
            local: None,
            remote: None,
        };
        self.emit(now, &observe::Event::PathAssigned(event));
    }

    /// Reports a request of `initiator` in a packet on `path`.
    pub(super) fn report_ack_frequency(
        &mut self,
        now: Instant,
        path: &Path,
        initiator: Initiator,
        requested: &Requested,
    ) {
        let event = AckFrequencyUpdated {
            path: path.id,
            initiator,
            ack_eliciting_threshold: requested.threshold,
            requested_max_ack_delay: requested.max_delay,
            reordering_threshold: requested.reordering_threshold,
        };
        self.emit(now, &observe::Event::AckFrequencyUpdated(event));
    }
}

impl Connection {
    /// Reports round-trip times, the window, and the phase of the controller if it changed.
    pub(super) fn report_metrics(&mut self, now: Instant, at: Slot) {
        if self.telemetry.observer.is_none() {
            return;
        }
        let packets_in_flight = self
            .spaces(at)
            .map(|(_, space)| space.sent.ack_eliciting_in_flight())
            .sum();
        let Some(observer) = &mut self.telemetry.observer else {
            return;
        };
        let path = self.paths[at].id;
        let bytes_queued = self.paths[at].queue.bytes();
        let recovery = &self.paths[at].recovery;
        let controller = recovery.controller();
        let rtt = recovery.rtt().view();
        let sampled = recovery.rtt().has_sample();
        let metrics = MetricsUpdated {
            path,
            min_rtt: sampled.then_some(rtt.min),
            smoothed_rtt: rtt.smoothed,
            latest_rtt: sampled.then_some(rtt.latest),
            rtt_variance: rtt.variance,
            pto_count: recovery.pto_count(),
            congestion_window: controller.window(),
            bytes_in_flight: recovery.in_flight(),
            packets_in_flight,
            bytes_queued,
            ssthresh: controller.ssthresh(),
            pacing_rate: recovery.pacing_rate(),
        };
        observer.on_event(now, &observe::Event::MetricsUpdated(metrics));
        let phase = controller.phase();
        let reported = self.paths[at].reported_phase.replace(phase);
        if reported != Some(phase) {
            let event = CongestionStateUpdated {
                path,
                old: reported.map(phase_name),
                new: phase_name(phase),
                trigger: None,
            };
            observer.on_event(now, &observe::Event::CongestionStateUpdated(event));
        }
    }

    /// Statistics of the connection since its start.
    pub fn stats(&self) -> ConnectionStats {
        let counters = &self.telemetry.counters;
        let sent = UdpStats {
            datagrams: counters.datagrams_sent,
            bytes: counters.bytes_sent,
        };
        let received = UdpStats {
            datagrams: counters.datagrams_received,
            bytes: counters.bytes_received,
        };
        let streams = self.streams.stats();
        ConnectionStats {
            version: self.establishment.versions().current(),
            streams: StreamStats {
                open: streams.open,
                bytes_sent: streams.bytes_sent,
                bytes_retransmitted: streams.bytes_retransmitted,
                bytes_received: streams.bytes_received,
                bytes_held: streams.bytes_held,
                out_of_order_bytes: streams.out_of_order.bytes,
                out_of_order_bytes_max: streams.out_of_order.max,
            },
            udp_sent: sent,
            udp_received: received,
            frames_received: self.telemetry.frames_received,
            packets_dropped: counters.packets_dropped,
            handshake: self.establishment.progress().took(),
            paths: self.paths.iter().map(Path::stats).collect(),
        }
    }
}

impl From<EcnValidationState> for EcnState {
    fn from(state: EcnValidationState) -> Self {
        match state {
            EcnValidationState::Testing => Self::Testing,
            EcnValidationState::Unknown => Self::Unknown,
            EcnValidationState::Capable => Self::Capable,
            EcnValidationState::Failed => Self::Failed,
        }
    }
}

impl Path {
    fn stats(&self) -> PathStats {
        let recovery = &self.recovery;
        let counters = recovery.counters();
        let controller = recovery.controller();
        let rtt = recovery.rtt().view();
        let sampled = recovery.rtt().has_sample();
        let active = &self.tuples.active;
        PathStats {
            id: self.id,
            local: Some(active.addresses.local),
            remote: active.addresses.remote,
            stage: match self.stage {
                Stage::Opening => PathStage::Validating,
                Stage::Open if !self.is_live() => PathStage::Suspected,
                Stage::Open => PathStage::Open,
                Stage::Abandoned { .. } => PathStage::Abandoned,
            },
            status: self.preference.status(),
            udp_sent: self.counters.sent,
            udp_received: self.counters.received,
            packets_sent: self.counters.packets_sent,
            packets_lost: counters.lost_packets,
            bytes_lost: counters.lost_bytes,
            packets_lost_spuriously: counters.spurious_losses,
            peer_packets_sent: self.space.received.largest().map_or(0, |number| number + 1),
            peer_packets_missing: self.space.received.missing(),
            ptos: self.counters.ptos,
            congestion_events: counters.congestion_events,
            undone_reductions: counters.undone_reductions,
            min_rtt: sampled.then_some(rtt.min),
            latest_rtt: sampled.then_some(rtt.latest),
            smoothed_rtt: rtt.smoothed,
            rtt_variance: rtt.variance,
            congestion_window: controller.window(),
            bytes_in_flight: recovery.in_flight(),
            bytes_queued: self.queue.bytes(),
            stream_bytes_sent: self.counters.stream_bytes,
            stream_bytes_copied: self.counters.stream_bytes_copied,
            pacing_rate: recovery.pacing_rate(),
            controller: controller.name(),
            phase: phase_name(controller.phase()),
            ecn: active.ecn.state().into(),
            ecn_ce: counters.ecn_ce,
            mtu: active.mtu.current(),
        }
    }
}
