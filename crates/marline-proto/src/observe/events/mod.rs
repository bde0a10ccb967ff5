//! Events of a connection, named as in the qlog event definitions
//! (draft-ietf-quic-qlog-quic-events).

mod bundle;
mod careful_resume;
mod connection;
mod packet;
mod path;
mod recovery;
mod security;
mod stream;

pub use bundle::{BundleAction, BundlePhase, BundleTrigger, BundleUpdated};
pub use careful_resume::{
    CarefulResumePhase, CarefulResumePhaseUpdated, CarefulResumeRestored, CarefulResumeTrigger,
};
pub use connection::{
    AckFrequencyUpdated, AlpnInformation, CloseTrigger, ClosedWith, ConnectionClosed,
    ConnectionIdUpdated, ConnectionStarted, ConnectionState, ConnectionStateUpdated, ParametersSet,
    VersionInformation,
};
pub use packet::{
    DropTrigger, Ecn, PacketDropped, PacketKind, PacketNumberSpace, PacketReceived, PacketSent,
    PacketsAcked, SendTrigger,
};
pub use path::{
    EcnState, EcnStateUpdated, MigrationState, MigrationStateUpdated, MtuUpdated, PathAssigned,
};
pub use recovery::{
    CongestionStateUpdated, InitialWindowChosen, LossTrigger, MetricsUpdated, PacketLost,
    RecoveryParametersSet, SpuriousLoss, Timer, TimerChange, TimerUpdated,
};
pub use security::{KeyDiscarded, KeyKind, KeyTrigger, KeyUpdated};
pub use stream::{ReassemblyUpdated, StreamHalf, StreamState, StreamStateUpdated};

use marline_wire::PathId;

/// The initiator of an event, from the perspective of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initiator {
    /// This end.
    Local,
    /// The peer.
    Remote,
}

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection was attempted or accepted.
    ConnectionStarted(ConnectionStarted),
    /// The connection entered another state.
    ConnectionStateUpdated(ConnectionStateUpdated),
    /// The connection closed; only changes of state may follow.
    ConnectionClosed(ConnectionClosed<'a>),
    /// The connection ID in use changed.
    ConnectionIdUpdated(ConnectionIdUpdated),
    /// Information about QUIC versions is known.
    VersionInformation(VersionInformation<'a>),
    /// Information about the application protocol is known.
    AlpnInformation(AlpnInformation<'a>),
    /// One end's transport parameters are known.
    ParametersSet(ParametersSet<'a>),
    /// The peer's parameters were remembered for 0-RTT.
    ParametersRestored(&'a marline_wire::params::TransportParameters),
    /// A packet was protected and passed on for sending.
    PacketSent(PacketSent<'a>),
    /// A packet was received and its protection removed.
    PacketReceived(PacketReceived<'a>),
    /// A packet was dropped.
    PacketDropped(PacketDropped),
    /// Packets were acknowledged for the first time.
    PacketsAcked(PacketsAcked<'a>),
    /// A packet was declared lost.
    PacketLost(PacketLost),
    /// A packet declared lost was acknowledged later.
    SpuriousLoss(SpuriousLoss),
    /// The initial parameters of loss detection and congestion control were set.
    RecoveryParametersSet(RecoveryParametersSet),
    /// The initial window of a path was chosen.
    InitialWindowChosen(InitialWindowChosen),
    /// RTT or window changed.
    MetricsUpdated(MetricsUpdated),
    /// The controller entered another phase.
    CongestionStateUpdated(CongestionStateUpdated),
    /// A timer was set, fired or cancelled.
    TimerUpdated(TimerUpdated),
    /// Keys became available.
    KeyUpdated(KeyUpdated),
    /// Keys were discarded.
    KeyDiscarded(KeyDiscarded),
    /// A path was assigned other addresses, or was abandoned.
    PathAssigned(PathAssigned),
    /// The datagram size of a path has changed.
    MtuUpdated(MtuUpdated),
    /// ECN validation entered another state.
    EcnStateUpdated(EcnStateUpdated),
    /// Migration entered another state.
    MigrationStateUpdated(MigrationStateUpdated),
    /// One half of a stream entered another state.
    StreamStateUpdated(StreamStateUpdated),
    /// The number of bytes buffered out of order has changed.
    ReassemblyUpdated(ReassemblyUpdated),
    /// Another acknowledgment frequency was requested.
    AckFrequencyUpdated(AckFrequencyUpdated),
    /// A path entered another phase of Careful Resume.
    CarefulResumePhaseUpdated(CarefulResumePhaseUpdated),
    /// The engine of the connection's bundle made a decision.
    BundleUpdated(BundleUpdated<'a>),
}

impl Event<'_> {
    /// The path of the event; `None` if it concerns the whole connection.
    pub const fn path(&self) -> Option<PathId> {
        match self {
            Self::ConnectionIdUpdated(event) => event.path,
            Self::PacketSent(event) => Some(event.path),
            Self::PacketReceived(event) => Some(event.path),
            Self::PacketDropped(event) => event.path,
            Self::PacketsAcked(event) => Some(event.path),
            Self::PacketLost(event) => Some(event.path),
            Self::SpuriousLoss(event) => Some(event.path),
            Self::RecoveryParametersSet(event) => Some(event.path),
            Self::InitialWindowChosen(event) => Some(event.path),
            Self::MetricsUpdated(event) => Some(event.path),
            Self::CongestionStateUpdated(event) => Some(event.path),
            Self::TimerUpdated(event) => event.path,
            Self::PathAssigned(event) => Some(event.path),
            Self::MtuUpdated(event) => Some(event.path),
            Self::EcnStateUpdated(event) => Some(event.path),
            Self::MigrationStateUpdated(event) => Some(event.path),
            Self::AckFrequencyUpdated(event) => Some(event.path),
            Self::CarefulResumePhaseUpdated(event) => Some(event.path),
            Self::ConnectionStarted(_)
            | Self::ConnectionStateUpdated(_)
            | Self::ConnectionClosed(_)
            | Self::VersionInformation(_)
            | Self::AlpnInformation(_)
            | Self::ParametersSet(_)
            | Self::ParametersRestored(_)
            | Self::KeyUpdated(_)
            | Self::KeyDiscarded(_)
            | Self::StreamStateUpdated(_)
            | Self::ReassemblyUpdated(_)
            | Self::BundleUpdated(_) => None,
        }
    }
}

/// Declares the names of events and a list of all names.
macro_rules! event_names {
    ($($variant:ident => $name:literal,)*) => {
        impl Event<'_> {
            /// The names of all events in qlog, in order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The event's name in qlog, with the namespace.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }
        }
    };
}

event_names! {
    ConnectionStarted => "quic:connection_started",
    ConnectionStateUpdated => "quic:connection_state_updated",
    ConnectionClosed => "quic:connection_closed",
    ConnectionIdUpdated => "quic:connection_id_updated",
    VersionInformation => "quic:version_information",
    AlpnInformation => "quic:alpn_information",
    ParametersSet => "quic:parameters_set",
    ParametersRestored => "quic:parameters_restored",
    PacketSent => "quic:packet_sent",
    PacketReceived => "quic:packet_received",
    PacketDropped => "quic:packet_dropped",
    PacketsAcked => "quic:packets_acked",
    PacketLost => "quic:packet_lost",
    SpuriousLoss => "marline:spurious_loss",
    RecoveryParametersSet => "quic:recovery_parameters_set",
    InitialWindowChosen => "marline:initial_window_chosen",
    MetricsUpdated => "quic:recovery_metrics_updated",
    CongestionStateUpdated => "quic:congestion_state_updated",
    TimerUpdated => "quic:timer_updated",
    KeyUpdated => "quic:key_updated",
    KeyDiscarded => "quic:key_discarded",
    PathAssigned => "quic:tuple_assigned",
    MtuUpdated => "quic:mtu_updated",
    EcnStateUpdated => "quic:ecn_state_updated",
    MigrationStateUpdated => "quic:migration_state_updated",
    StreamStateUpdated => "quic:stream_state_updated",
    ReassemblyUpdated => "marline:reassembly_updated",
    AckFrequencyUpdated => "marline:ack_frequency_updated",
    CarefulResumePhaseUpdated => "recovery:careful_resume_phase_updated",
    BundleUpdated => "marline:bundle_updated",
}
