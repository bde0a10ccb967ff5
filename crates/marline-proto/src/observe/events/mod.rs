//! What can happen to a connection, named as in the qlog event definitions
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
    DropTrigger, Ecn, PacketDropped, PacketKind, PacketReceived, PacketSent, PacketsAcked,
    SendTrigger, Space,
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

/// A path of a connection; 0 is the one the handshake ran on.
pub type PathId = u32;

/// Which end began something, seen from this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initiator {
    /// This end.
    Local,
    /// The peer.
    Remote,
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection was attempted or accepted.
    ConnectionStarted(ConnectionStarted),
    /// The connection's life moved on.
    ConnectionStateUpdated(ConnectionStateUpdated),
    /// The connection closed; the last but for state changes.
    ConnectionClosed(ConnectionClosed<'a>),
    /// Another connection ID is in use.
    ConnectionIdUpdated(ConnectionIdUpdated),
    /// What is known about QUIC versions.
    VersionInformation(VersionInformation<'a>),
    /// What is known about the application protocol.
    AlpnInformation(AlpnInformation<'a>),
    /// One end's transport parameters.
    ParametersSet(ParametersSet<'a>),
    /// The peer's parameters remembered for 0-RTT.
    ParametersRestored(&'a marline_wire::params::TransportParameters),
    /// A packet was sealed and handed over.
    PacketSent(PacketSent<'a>),
    /// A packet was opened.
    PacketReceived(PacketReceived<'a>),
    /// A packet was thrown away unread.
    PacketDropped(PacketDropped),
    /// Packets were acknowledged for the first time.
    PacketsAcked(PacketsAcked<'a>),
    /// A packet was declared lost.
    PacketLost(PacketLost),
    /// A packet declared lost was acknowledged after all.
    SpuriousLoss(SpuriousLoss),
    /// What loss detection and congestion control start from.
    RecoveryParametersSet(RecoveryParametersSet),
    /// A path begins with this window.
    InitialWindowChosen(InitialWindowChosen),
    /// RTT or window changed.
    MetricsUpdated(MetricsUpdated),
    /// The controller entered another phase.
    CongestionStateUpdated(CongestionStateUpdated),
    /// A timer was set, fired or cancelled.
    TimerUpdated(TimerUpdated),
    /// Keys became available.
    KeyUpdated(KeyUpdated),
    /// Keys were forgotten.
    KeyDiscarded(KeyDiscarded),
    /// A path has other addresses, or none any more.
    PathAssigned(PathAssigned),
    /// A path carries datagrams of another size.
    MtuUpdated(MtuUpdated),
    /// ECN validation moved on.
    EcnStateUpdated(EcnStateUpdated),
    /// Migration moved on.
    MigrationStateUpdated(MigrationStateUpdated),
    /// One half of a stream moved on.
    StreamStateUpdated(StreamStateUpdated),
    /// More or less received data waits for what is missing before it.
    ReassemblyUpdated(ReassemblyUpdated),
    /// Other acknowledgement behavior was asked for.
    AckFrequencyUpdated(AckFrequencyUpdated),
    /// A path entered another phase of Careful Resume.
    CarefulResumePhaseUpdated(CarefulResumePhaseUpdated),
    /// The engine of the connection's bundle decided something.
    BundleUpdated(BundleUpdated<'a>),
    /// An event of marline's own, outside the standard definitions.
    Marline(MarlineEvent<'a>),
}

impl Event<'_> {
    /// The path it happened on; `None` if it concerns the whole connection.
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
            Self::CarefulResumePhaseUpdated(event) => Some(event.path),
            Self::Marline(event) => event.path,
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
            | Self::AckFrequencyUpdated(_)
            | Self::BundleUpdated(_) => None,
        }
    }
}

/// An event in the `marline` namespace, for what coordination, schedulers and experiments report.
#[derive(Clone, Copy, Debug)]
pub struct MarlineEvent<'a> {
    /// The path it concerns, if one.
    pub path: Option<PathId>,
    /// Its type in snake case; qlog shows `marline:NAME`.
    pub name: &'a str,
    /// Its data in order: names in snake case, values.
    pub fields: &'a [(&'a str, Value<'a>)],
}

/// A value of a [`MarlineEvent`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A count, or bytes.
    U64(u64),
    /// A ratio; what is not finite is shown as null.
    F64(f64),
    /// A yes or no.
    Bool(bool),
    /// A word.
    Str(&'a str),
    /// A time span, shown in milliseconds.
    Duration(std::time::Duration),
}
