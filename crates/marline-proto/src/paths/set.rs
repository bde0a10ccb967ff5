//! The paths of a connection: existing ones, those that may be opened, and their common state.

mod begin;
mod bundle;
mod end;
mod failure;
mod frames;
mod ids;
mod peer;
mod tuples;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use marline_wire::{ConnectionId, PathId, Side};

use crate::ack::Requested;
use crate::config::{MultipathConfig, TransportConfig};
use crate::congestion::{ControllerConfig, ControllerFactory, Pacer};
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::paths::bundles::PathBundles;
use crate::paths::extension::Extension;
use crate::paths::path::PathIds;
use crate::paths::{
    AmplificationLimit, LocalCids, Path, PathList, RemoteCids, Reserved, Slot, Tuple,
    ValidationTimes,
};
use crate::recovery::{INITIAL_RTT, InitialWindowChoice, Recovery, RecoveryConfig, RttEstimator};
use crate::rng::ConnectionRng;
use crate::scheduling::path::PathStatus;
use crate::tuple::{EcnCodepoint, FourTuple};

/// The paths of a connection. Without the multipath extension there is one.
///
/// The list of paths is read and changed in place ([`PathList`]); operations on several paths, or on paths
/// that are not open, are methods here. They decide, and return the actions for other modules.
#[derive(Debug)]
pub(crate) struct PathSet {
    list: PathList,
    /// Set once multipath is negotiated.
    extension: Option<Box<Extension>>,
    /// Set if this end coordinates paths of one 4-tuple.
    bundles: Option<Box<PathBundles>>,
    /// Creates the controllers of paths.
    controllers: Arc<dyn ControllerFactory>,
    /// Number of 4-tuples ever created, except the first.
    generation: u32,
    /// Whether the peer may be able to hold more of our connection IDs.
    issue_ids: bool,
    /// Whether the main path leads to another host than that of the handshake.
    moved: bool,
}

/// The path of the handshake.
#[derive(Clone, Copy)]
pub(crate) struct FirstPath {
    pub(crate) addresses: FourTuple,
    /// Whether the peer's address is validated.
    pub(crate) is_validated: bool,
    pub(crate) local_cid: ConnectionId,
    pub(crate) remote_cid: ConnectionId,
    pub(crate) initial_window: InitialWindowChoice,
    /// Round-trip time assumed until the first sample.
    pub(crate) initial_rtt: Duration,
}

/// The parameters of a new path.
pub(crate) struct NewPath<'a> {
    pub(crate) openable: Openable,
    /// Our ID that the peer uses first.
    pub(crate) active_local: ConnectionId,
    pub(crate) addresses: FourTuple,
    pub(crate) config: &'a TransportConfig,
    pub(crate) initial_window: InitialWindowChoice,
    /// The peer's limits on connection IDs, and on datagram sizes in bytes.
    pub(crate) active_connection_id_limit: u64,
    pub(crate) max_udp_payload_size: u64,
    pub(crate) max_ack_delay: Duration,
    /// The peer's last ACK_FREQUENCY request.
    pub(crate) ack_request: Option<&'a Requested>,
}

/// A path taken from the reserve, for which both ends hold connection IDs.
#[derive(Debug)]
pub(crate) struct Openable {
    reserved: Reserved,
    remote: RemoteCids,
}

impl Openable {
    fn new(mut reserved: Reserved) -> Option<Self> {
        let remote = reserved.remote.take()?;
        Some(Self { reserved, remote })
    }

    /// The connection ID that the peer will use first on the path.
    pub(crate) fn first_local_cid(&self) -> Option<ConnectionId> {
        self.reserved.local.iter().next()
    }
}

/// A PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusFrame {
    pub(crate) path: PathId,
    pub(crate) status: PathStatus,
    pub(crate) sequence: u64,
    pub(crate) frame_type: u64,
}

/// The path of a packet, according to its destination connection ID.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PacketPath {
    /// An existing path.
    Known(Slot),
    /// A path that the packet opens, if it is authentic.
    New(PathId),
    /// No path: the packet is dropped.
    None,
}

impl PathSet {
    /// The path of a handshake. Draws a seed for its controller, and the first packet number to skip.
    pub(crate) fn new(config: &TransportConfig, first: FirstPath, rng: &mut ConnectionRng) -> Self {
        let mut tuple = Tuple::new(config, 0, first.addresses);
        if first.is_validated {
            tuple.amplification = AmplificationLimit::validated();
        }
        // The engine of a bundle coordinates its paths itself.
        let is_coupled = |multipath: &MultipathConfig| multipath.bundle_paths.is_none();
        let controllers = match config.multipath.as_ref().is_some_and(is_coupled) {
            true => config.controller.of_connection(),
            false => None,
        };
        let controllers = controllers.unwrap_or_else(|| Arc::clone(&config.controller));
        let recovery = recovery_config(
            config,
            &*controllers,
            PathStart {
                initial_window: first.initial_window,
                datagram_size: MIN_DATAGRAM_SIZE,
                initial_rtt: first.initial_rtt,
                seed: rng.seed(),
            },
        );
        let ids = PathIds {
            local: LocalCids::new(first.local_cid),
            remote: RemoteCids::new(first.remote_cid),
            active_local: first.local_cid,
        };
        let skip_at = match config.skip_packet_numbers {
            true => rng.next_skip(0),
            false => u64::MAX,
        };
        let path = Path::new(
            PathId::INITIAL,
            ids,
            tuple,
            Recovery::new(recovery),
            (config.ack_policy)(),
            skip_at,
        );
        Self {
            list: PathList::new(path),
            extension: None,
            bundles: None,
            controllers,
            generation: 0,
            issue_ids: false,
            moved: false,
        }
    }

    /// Whether multipath was negotiated; known once the handshake is complete.
    pub(crate) fn is_multipath(&self) -> bool {
        self.extension.is_some()
    }

    /// The ID of the path of all packets; `None` with multipath.
    pub(crate) fn only(&self) -> Option<PathId> {
        (!self.is_multipath()).then_some(PathId::INITIAL)
    }

    /// The ID of a path in frames and events; `None` without the extension, where they contain none.
    pub(crate) fn named(&self, at: Slot) -> Option<PathId> {
        self.is_multipath().then_some(self.list[at].id)
    }

    /// Whether this end coordinates the paths of a 4-tuple.
    pub(crate) fn is_coordinating(&self) -> bool {
        self.bundles.is_some()
    }

    /// Whether the main path is not that of the handshake, or leads to another host.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved || self.list.main().id != PathId::INITIAL
    }

    /// Enables multipath; `theirs` is the peer's maximum path ID.
    pub(crate) fn begin_multipath(&mut self, config: &MultipathConfig, theirs: PathId, side: Side) {
        self.extension = Some(Box::new(Extension::new(config, theirs, side)));
        let bundles = config.bundle_paths.clone();
        self.bundles = bundles.map(|bundles| Box::new(PathBundles::new(bundles)));
        self.issue_ids = true;
    }

    /// The path of a packet to `destination`, once there may be several.
    pub(crate) fn packet_path(
        &self,
        destination: &ConnectionId,
        accepts_paths: bool,
    ) -> PacketPath {
        let Some(extension) = &self.extension else {
            return PacketPath::Known(Slot::FIRST);
        };
        if let Some(at) = self.list.by_destination(destination) {
            return PacketPath::Known(at);
        }
        match extension.reserve.by_destination(destination) {
            Some(id) if accepts_paths && extension.reserve.is_usable(id) => PacketPath::New(id),
            Some(_) => PacketPath::None,
            // The packet may be a stateless reset.
            None => PacketPath::Known(self.list.main_slot()),
        }
    }
}

/// An added path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedPath {
    pub(crate) at: Slot,
    /// Whether its addresses are validated.
    pub(crate) is_proven: bool,
}

impl Deref for PathSet {
    type Target = PathList;

    #[inline]
    fn deref(&self) -> &PathList {
        &self.list
    }
}

impl DerefMut for PathSet {
    #[inline]
    fn deref_mut(&mut self) -> &mut PathList {
        &mut self.list
    }
}

#[cfg(test)]
impl PathSet {
    /// The largest path ID that the peer may use, with multipath.
    pub(crate) fn last_allowed(&self) -> Option<PathId> {
        self.extension
            .as_ref()
            .map(|extension| extension.last_allowed())
    }

    /// Number of notices that the peer has not acknowledged.
    pub(crate) fn notices(&self) -> usize {
        self.extension
            .as_ref()
            .map_or(0, |extension| extension.notices.len())
    }

    /// Number of paths that are not open and not forgotten.
    pub(crate) fn unopened(&self) -> usize {
        self.extension
            .as_ref()
            .map_or(0, |extension| extension.len())
    }

    /// The paths that are coordinated together.
    pub(crate) fn bundled(&self) -> Vec<Vec<PathId>> {
        self.bundles
            .as_ref()
            .map_or_else(Vec::new, |bundles| bundles.members())
    }
}

/// The parameters of a path's recovery besides the configuration.
#[derive(Clone, Copy)]
struct PathStart {
    initial_window: InitialWindowChoice,
    /// Size in bytes.
    datagram_size: u16,
    initial_rtt: Duration,
    seed: u64,
}

fn recovery_config(
    config: &TransportConfig,
    controllers: &dyn ControllerFactory,
    start: PathStart,
) -> RecoveryConfig {
    let controller = ControllerConfig {
        initial_window: start.initial_window.bytes,
        max_datagram_size: start.datagram_size.into(),
        slow_start_exit: (config.slow_start_exit)(),
        backoff: config.backoff,
        emulated_flows: config.emulated_flows,
        slow_start_growth: config.slow_start_growth,
        seed: start.seed,
    };
    RecoveryConfig {
        initial_rtt: start.initial_rtt,
        controller: controllers.build(controller),
        detector: (config.loss_detector)(),
        pacer: config.pacing.then(|| pacer(config, start.datagram_size)),
        initial_window: start.initial_window,
        two_probes: config.two_probes,
    }
}

fn pacer(config: &TransportConfig, datagram_size: u16) -> Pacer {
    let pacer = Pacer::new(datagram_size.into()).with_quantum(config.send_quantum);
    match config.ect() {
        Some(EcnCodepoint::Ect1) => pacer.with_short_bursts(),
        _ => pacer.with_gather(config.send_gather),
    }
}

/// The times of a validation of a path with the probe timeout `pto`: the timeout uses the larger of that and the one
/// of a path without a sample (RFC 9000, section 8.2.4).
fn validation_times(pto: Duration, config: &TransportConfig) -> ValidationTimes {
    ValidationTimes {
        unknown: RttEstimator::new(config.initial_rtt).pto(),
        pto: pto.max(RttEstimator::new(config.initial_rtt.max(INITIAL_RTT)).pto()),
    }
}
