//! Reports changes of state to the observer, by comparison with the state last reported. Without an
//! observer nothing is compared.

use marline_wire::{ConnectionId, PathId};

use super::super::Connection;
use super::Telemetry;
use crate::congestion::MINIMUM_WINDOW_PACKETS;
use crate::establish::VersionState;
use crate::observe::Event;
use crate::observe::events::{
    AlpnInformation, ConnectionIdUpdated, EcnState, EcnStateUpdated, Initiator, MtuUpdated,
    RecoveryParametersSet, Timer, TimerChange, TimerUpdated, VersionInformation,
};
use crate::paths::{Path, PathList};
use crate::recovery::{ArmedTimer, Expired, GRANULARITY};
use crate::streams::Streams;
use crate::time::Instant;

/// The state of a path last reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedPath {
    path: PathId,
    mtu: ReportedMtu,
    ecn: Option<EcnState>,
    timer: Option<ArmedTimer>,
    /// Our connection ID that the peer's packets carry.
    local_id: Option<ConnectionId>,
    /// The peer's connection ID that our packets carry.
    remote_id: Option<ConnectionId>,
}

/// The datagram size, and whether the search for a larger one is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReportedMtu {
    bytes: u16,
    done: bool,
}

impl ReportedMtu {
    fn of(path: &Path) -> Self {
        let mtu = &path.tuples.active.mtu;
        Self {
            bytes: mtu.current(),
            done: mtu.is_done(),
        }
    }
}

impl ReportedPath {
    fn new(path: &Path) -> Self {
        Self {
            path: path.id,
            mtu: ReportedMtu::of(path),
            ecn: None,
            timer: None,
            local_id: None,
            remote_id: None,
        }
    }
}

fn as_slices(protocols: &[Vec<u8>]) -> Vec<&[u8]> {
    protocols.iter().map(Vec::as_slice).collect()
}

impl Telemetry {
    /// Reports what has changed since the last call.
    pub(in crate::connection) fn report_changes(
        &mut self,
        now: Instant,
        streams: &mut Streams,
        paths: &PathList,
    ) {
        if self.observer.is_none() {
            return;
        }
        for change in streams.take_state_changes() {
            self.emit(now, &Event::StreamStateUpdated(change));
        }
        for path in paths.iter() {
            self.report_remote_id(now, path);
            self.report_mtu(now, path);
            self.report_ecn(now, path);
            self.report_timer(now, path);
        }
        self.reported_paths
            .retain(|known| paths.by_id(known.path).is_some());
    }

    /// The state of a path last reported.
    fn reported(&mut self, path: &Path) -> &mut ReportedPath {
        let reported = &mut self.reported_paths;
        let index = match reported.iter().position(|known| known.path == path.id) {
            Some(index) => index,
            None => {
                reported.push(ReportedPath::new(path));
                reported.len() - 1
            }
        };
        &mut reported[index]
    }

    /// Records the connection IDs of the first packets as reported: `ConnectionStarted` names them.
    pub(in crate::connection) fn report_first_ids(&mut self, path: &Path, local: ConnectionId) {
        if self.observer.is_none() {
            return;
        }
        let known = self.reported(path);
        known.local_id = Some(local);
        known.remote_id = Some(*path.remote_cids.active());
    }

    fn report_remote_id(&mut self, now: Instant, path: &Path) {
        if path.is_abandoned() {
            return;
        }
        let (id, new) = (path.id, *path.remote_cids.active());
        let old = self.reported(path).remote_id.replace(new);
        if old != Some(new) {
            let event = ConnectionIdUpdated {
                path: Some(id),
                initiator: Initiator::Remote,
                old,
                new: Some(new),
            };
            self.emit(now, &Event::ConnectionIdUpdated(event));
        }
    }

    /// Reports that the newest packet of a path has `new` as destination connection ID, if that changed.
    pub(in crate::connection) fn report_local_id(
        &mut self,
        now: Instant,
        path: &Path,
        new: ConnectionId,
    ) {
        let id = path.id;
        let old = self.reported(path).local_id.replace(new);
        if old != Some(new) {
            let event = ConnectionIdUpdated {
                path: Some(id),
                initiator: Initiator::Local,
                old,
                new: Some(new),
            };
            self.emit(now, &Event::ConnectionIdUpdated(event));
        }
    }

    fn report_mtu(&mut self, now: Instant, path: &Path) {
        let (id, new) = (path.id, ReportedMtu::of(path));
        let old = std::mem::replace(&mut self.reported(path).mtu, new);
        if old.bytes != new.bytes || new.done && !old.done {
            let event = MtuUpdated {
                path: id,
                old: old.bytes,
                new: new.bytes,
                done: new.done,
            };
            self.emit(now, &Event::MtuUpdated(event));
        }
    }

    fn report_ecn(&mut self, now: Instant, path: &Path) {
        let (id, new) = (path.id, EcnState::from(path.tuples.active.ecn.state()));
        let old = self.reported(path).ecn.replace(new);
        // A path that never uses ECN has no validation to report.
        let is_unused = old.is_none() && new == EcnState::Failed;
        if old != Some(new) && !is_unused {
            let event = EcnStateUpdated { path: id, old, new };
            self.emit(now, &Event::EcnStateUpdated(event));
        }
    }

    /// Reports that the loss detection timer of a path was set or cancelled.
    fn report_timer(&mut self, now: Instant, path: &Path) {
        let armed = path.recovery.armed_timer();
        let old = std::mem::replace(&mut self.reported(path).timer, armed);
        if old == armed {
            return;
        }
        match (armed, old) {
            (Some(timer), _) => {
                let change = TimerChange::Set(timer.at.saturating_since(now));
                self.emit_timer(now, path, timer, change);
            }
            (None, Some(timer)) => self.emit_timer(now, path, timer, TimerChange::Cancelled),
            (None, None) => {}
        }
    }

    /// Reports that the loss detection timer of a path has expired.
    pub(in crate::connection) fn report_timer_expired(&mut self, now: Instant, path: &Path) {
        if self.observer.is_none() {
            return;
        }
        if let Some(timer) = path.recovery.armed_timer() {
            self.reported(path).timer = None;
            self.emit_timer(now, path, timer, TimerChange::Expired);
        }
    }

    fn emit_timer(&mut self, now: Instant, path: &Path, timer: ArmedTimer, change: TimerChange) {
        let (kind, space) = match timer.reason {
            Expired::Loss(space) => (Timer::LossTimeout, space),
            Expired::Probe(space) => (Timer::Pto, space),
        };
        let event = TimerUpdated {
            path: Some(path.id),
            timer: kind,
            space: Some(space.number_space()),
            change,
        };
        self.emit(now, &Event::TimerUpdated(event));
    }

    /// Reports the recovery parameters of a path when recovery starts or restarts.
    pub(in crate::connection) fn report_recovery_parameters(&mut self, now: Instant, path: &Path) {
        if self.observer.is_none() {
            return;
        }
        let recovery = &path.recovery;
        let rtt = recovery.rtt().view();
        let max_datagram_size = u64::from(path.tuples.active.mtu.current());
        let detector = recovery.detector();
        let event = RecoveryParametersSet {
            path: path.id,
            reordering_threshold: detector.packet_threshold(),
            time_threshold: detector.time_threshold(&rtt).as_secs_f64()
                / rtt.smoothed.as_secs_f64(),
            timer_granularity: GRANULARITY,
            initial_rtt: rtt.smoothed,
            max_datagram_size,
            initial_congestion_window: recovery.initial_window().bytes,
            minimum_congestion_window: MINIMUM_WINDOW_PACKETS * max_datagram_size,
            controller: recovery.controller().name(),
        };
        self.emit(now, &Event::RecoveryParametersSet(event));
    }

    /// Reports the versions that a client offers or a server supports, and the choice so far.
    pub(in crate::connection) fn report_versions(&mut self, now: Instant, state: &VersionState) {
        let versions = state.offered();
        let event = match self.side.is_client() {
            true => VersionInformation {
                client: &versions,
                ..VersionInformation::default()
            },
            false => VersionInformation {
                server: &versions,
                chosen: Some(state.current()),
                ..VersionInformation::default()
            },
        };
        self.emit(now, &Event::VersionInformation(event));
    }

    /// Reports the application protocols that a client offers.
    pub(in crate::connection) fn report_offered_protocols(
        &mut self,
        now: Instant,
        protocols: &[Vec<u8>],
    ) {
        if self.observer.is_none() {
            return;
        }
        let event = AlpnInformation {
            client: &as_slices(protocols),
            ..AlpnInformation::default()
        };
        self.emit(now, &Event::AlpnInformation(event));
    }

    /// Reports the versions of a Version Negotiation packet.
    pub(in crate::connection) fn report_offered_versions(
        &mut self,
        now: Instant,
        state: &VersionState,
        offered: &[u32],
    ) {
        let event = VersionInformation {
            server: offered,
            client: &state.offered(),
            chosen: None,
        };
        self.emit(now, &Event::VersionInformation(event));
    }
}

impl Connection {
    /// Reports the version and the application protocol that both ends have agreed on.
    pub(in crate::connection) fn report_negotiated(&mut self, now: Instant) {
        let Some(observer) = &mut self.telemetry.observer else {
            return;
        };
        if self.side.is_client() {
            let event = VersionInformation {
                client: &self.establishment.versions().offered(),
                chosen: Some(self.establishment.versions().current()),
                ..VersionInformation::default()
            };
            observer.on_event(now, &Event::VersionInformation(event));
        }
        let supported = match &self.server {
            Some(server) => as_slices(server.config.tls.alpn_protocols()),
            None => Vec::new(),
        };
        let event = AlpnInformation {
            server: &supported,
            client: &[],
            chosen: self.establishment.tls().alpn(),
        };
        observer.on_event(now, &Event::AlpnInformation(event));
    }
}
