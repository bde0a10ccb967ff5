//! qlog names for the values of events.

use crate::observe::events::*;
use crate::observe::json::Json;
use marline_wire::{Dir, PathId, Side};

/// Writes the ID of a path as text, which qlog requires.
pub(super) fn path(json: &mut Json<'_>, key: &str, path: PathId) {
    json.quoted_u64(key, path.into());
}

pub(super) const fn packet_type(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0RTT",
        PacketKind::Handshake => "handshake",
        PacketKind::OneRtt => "1RTT",
        PacketKind::Retry => "retry",
        PacketKind::VersionNegotiation => "version_negotiation",
        PacketKind::StatelessReset => "stateless_reset",
        PacketKind::Unknown => "unknown",
    }
}

pub(super) const fn space(space: PacketNumberSpace) -> &'static str {
    match space {
        PacketNumberSpace::Initial => "initial",
        PacketNumberSpace::Handshake => "handshake",
        PacketNumberSpace::ApplicationData => "application_data",
    }
}

pub(super) const fn ecn(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "Not-ECT",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    }
}

pub(super) const fn send_trigger(trigger: SendTrigger) -> &'static str {
    match trigger {
        SendTrigger::RetransmitReordered => "retransmit_reordered",
        SendTrigger::RetransmitTimeout => "retransmit_timeout",
        SendTrigger::PtoProbe => "pto_probe",
        SendTrigger::RetransmitCrypto => "retransmit_crypto",
    }
}

pub(super) const fn drop_trigger(trigger: DropTrigger) -> &'static str {
    match trigger {
        DropTrigger::InternalError => "internal_error",
        DropTrigger::Rejected => "rejected",
        DropTrigger::Unsupported => "unsupported",
        DropTrigger::Invalid => "invalid",
        DropTrigger::Duplicate => "duplicate",
        DropTrigger::ConnectionUnknown => "connection_unknown",
        DropTrigger::DecryptionFailure => "decryption_failure",
        DropTrigger::KeyUnavailable => "key_unavailable",
        DropTrigger::General => "general",
    }
}

pub(super) const fn loss_trigger(trigger: LossTrigger) -> &'static str {
    match trigger {
        LossTrigger::ReorderingThreshold => "reordering_threshold",
        LossTrigger::TimeThreshold => "time_threshold",
        LossTrigger::PtoExpired => "pto_expired",
    }
}

pub(super) const fn close_trigger(trigger: CloseTrigger) -> &'static str {
    match trigger {
        CloseTrigger::IdleTimeout => "idle_timeout",
        CloseTrigger::Application => "application",
        CloseTrigger::Error => "error",
        CloseTrigger::VersionMismatch => "version_mismatch",
        CloseTrigger::StatelessReset => "stateless_reset",
        CloseTrigger::Aborted => "aborted",
        CloseTrigger::Unspecified => "unspecified",
    }
}

pub(super) const fn connection_state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Attempted => "attempted",
        ConnectionState::PeerValidated => "peer_validated",
        ConnectionState::HandshakeStarted => "handshake_started",
        ConnectionState::EarlyWrite => "early_write",
        ConnectionState::HandshakeComplete => "handshake_complete",
        ConnectionState::HandshakeConfirmed => "handshake_confirmed",
        ConnectionState::Closing => "closing",
        ConnectionState::Draining => "draining",
        ConnectionState::Closed => "closed",
    }
}

pub(super) const fn initiator(initiator: Initiator) -> &'static str {
    match initiator {
        Initiator::Local => "local",
        Initiator::Remote => "remote",
    }
}

pub(super) const fn timer(timer: Timer) -> &'static str {
    match timer {
        Timer::Ack => "ack",
        Timer::Pto => "pto",
        Timer::LossTimeout => "loss_timeout",
        Timer::PathValidation => "path_validation",
        Timer::Handshake => "handshake_timeout",
        Timer::Idle => "idle_timeout",
    }
}

pub(super) const fn key_type(sender: Side, kind: KeyKind) -> &'static str {
    match (sender, kind) {
        (Side::Client, KeyKind::Initial) => "client_initial_secret",
        (Side::Client, KeyKind::Handshake) => "client_handshake_secret",
        (Side::Client, KeyKind::ZeroRtt) => "client_0rtt_secret",
        (Side::Client, KeyKind::OneRtt) => "client_1rtt_secret",
        (Side::Server, KeyKind::Initial) => "server_initial_secret",
        (Side::Server, KeyKind::Handshake) => "server_handshake_secret",
        (Side::Server, KeyKind::ZeroRtt) => "server_0rtt_secret",
        (Side::Server, KeyKind::OneRtt) => "server_1rtt_secret",
    }
}

pub(super) const fn key_trigger(trigger: KeyTrigger) -> &'static str {
    match trigger {
        KeyTrigger::Tls => "tls",
        KeyTrigger::RemoteUpdate => "remote_update",
        KeyTrigger::LocalUpdate => "local_update",
    }
}

pub(super) const fn ecn_state(state: EcnState) -> &'static str {
    match state {
        EcnState::Testing => "testing",
        EcnState::Unknown => "unknown",
        EcnState::Failed => "failed",
        EcnState::Capable => "capable",
    }
}

pub(super) const fn migration_state(state: MigrationState) -> &'static str {
    match state {
        MigrationState::ProbingStarted => "probing_started",
        MigrationState::ProbingAbandoned => "probing_abandoned",
        MigrationState::ProbingSuccessful => "probing_successful",
        MigrationState::MigrationStarted => "migration_started",
        MigrationState::MigrationAbandoned => "migration_abandoned",
        MigrationState::MigrationComplete => "migration_complete",
    }
}

pub(super) const fn stream_type(dir: Dir) -> &'static str {
    match dir {
        Dir::Bi => "bidirectional",
        Dir::Uni => "unidirectional",
    }
}

pub(super) const fn stream_half(half: StreamHalf) -> &'static str {
    match half {
        StreamHalf::Sending => "sending",
        StreamHalf::Receiving => "receiving",
    }
}

pub(super) const fn stream_state(state: StreamState) -> &'static str {
    match state {
        StreamState::Ready => "ready",
        StreamState::Send => "send",
        StreamState::DataSent => "data_sent",
        StreamState::ResetSent => "reset_sent",
        StreamState::ResetReceived => "reset_received",
        StreamState::Receive => "receive",
        StreamState::SizeKnown => "size_known",
        StreamState::DataReceived => "data_received",
        StreamState::DataRead => "data_read",
        StreamState::ResetRead => "reset_read",
    }
}

pub(super) const fn bundle_trigger(trigger: BundleTrigger) -> &'static str {
    match trigger {
        BundleTrigger::Joined => "joined",
        BundleTrigger::Loss => "loss",
        BundleTrigger::SlowStartExit => "slow_start_exit",
        BundleTrigger::Round => "round",
        BundleTrigger::Moved => "moved",
    }
}

pub(super) const fn bundle_action(action: BundleAction) -> &'static str {
    match action {
        BundleAction::None => "none",
        BundleAction::Split => "split",
        BundleAction::Synchronized => "synchronized",
        BundleAction::Coalesced => "coalesced",
        BundleAction::BackedOff => "backed_off",
        BundleAction::Exited => "exited",
        BundleAction::Equalized => "equalized",
        BundleAction::EqualizedRates => "equalized_rates",
        BundleAction::Shared => "shared",
    }
}

pub(super) const fn bundle_phase(phase: BundlePhase) -> &'static str {
    match phase {
        BundlePhase::SlowStart => "slow_start",
        BundlePhase::CongestionAvoidance => "congestion_avoidance",
    }
}

pub(super) const fn careful_resume_phase(phase: CarefulResumePhase) -> &'static str {
    match phase {
        CarefulResumePhase::Reconnaissance => "reconnaissance",
        CarefulResumePhase::Unvalidated => "unvalidated",
        CarefulResumePhase::Validating => "validating",
        CarefulResumePhase::SafeRetreat => "safe_retreat",
        CarefulResumePhase::Normal => "normal",
    }
}

pub(super) const fn careful_resume_trigger(trigger: CarefulResumeTrigger) -> &'static str {
    use CarefulResumeTrigger as Trigger;
    match trigger {
        Trigger::CongestionWindowLimited => "congestion_window_limited",
        Trigger::RttNotValidated => "rtt_not_validated",
        Trigger::LastUnvalidatedPacketSent => "last_unvalidated_packet_sent",
        Trigger::FirstUnvalidatedPacketAcknowledged => "first_unvalidated_packet_acknowledged",
        Trigger::RttExceeded => "rtt_exceeded",
        Trigger::RateLimited => "rate_limited",
        Trigger::LastUnvalidatedPacketAcknowledged => "last_unvalidated_packet_acknowledged",
        Trigger::PathChanged => "path_changed",
        Trigger::PacketLoss => "packet_loss",
        Trigger::EcnCe => "ECN_CE",
        Trigger::ExitRecovery => "exit_recovery",
    }
}
