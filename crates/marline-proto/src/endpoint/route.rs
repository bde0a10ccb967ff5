//! Routing of datagrams to connections.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use marline_wire::packet::{self, Packet, ProtectedHeader, ProtectedKind};
use marline_wire::{ConnectionId, Version};
use rustc_hash::FxHashMap;

use super::accept::UnknownInitial;
use super::stateless::RefusedVersion;
use super::{ConnectionHandle, Endpoint, Route};
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::time::Instant;
use crate::tuple::{EcnCodepoint, FourTuple};

/// The routing tables of an endpoint.
#[derive(Debug)]
pub(super) struct Routes {
    id_len: usize,
    /// By connection ID. This end chooses them at random, so a fast hash function is safe.
    ids: FxHashMap<ConnectionId, ConnectionHandle>,
    /// By the destination connection ID of clients' first packets, which the clients choose.
    initials: HashMap<(ConnectionId, SocketAddr), ConnectionHandle>,
}

impl Routes {
    pub(super) fn new(id_len: usize) -> Self {
        Self {
            id_len,
            ids: FxHashMap::default(),
            initials: HashMap::new(),
        }
    }

    /// Number of routed IDs.
    #[cfg(test)]
    pub(super) fn ids(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn add(&mut self, id: ConnectionId, handle: ConnectionHandle) {
        self.ids.insert(id, handle);
    }

    pub(super) fn remove(&mut self, id: &ConnectionId) {
        self.ids.remove(id);
    }

    pub(super) fn add_initial(
        &mut self,
        id: ConnectionId,
        remote: SocketAddr,
        handle: ConnectionHandle,
    ) {
        self.initials.insert((id, remote), handle);
    }

    pub(super) fn remove_initial(&mut self, id: &ConnectionId, remote: SocketAddr) {
        self.initials.remove(&(*id, remote));
    }

    #[inline]
    fn find(&self, destination: &[u8], remote: SocketAddr) -> Option<ConnectionHandle> {
        let id = ConnectionId::new(destination)?;
        if id.len() == self.id_len
            && let Some(handle) = self.ids.get(&id)
        {
            return Some(*handle);
        }
        if self.initials.is_empty() {
            return None;
        }
        self.initials.get(&(id, remote)).copied()
    }
}

/// When a datagram arrived, and from where.
struct Arrival {
    now: Instant,
    unix_time_s: u64,
    tuple: FourTuple,
    ecn: Option<EcnCodepoint>,
    /// Whether another worker has passed it on.
    is_passed: bool,
}

impl Endpoint {
    /// Whether clients may not use `version`.
    fn refuses(&self, version: Version) -> bool {
        self.server
            .as_ref()
            .is_some_and(|server| !server.versions.contains(version))
    }

    /// Routes a datagram. If the result is [`Route::Reply`], `reply` holds the datagram to send.
    ///
    /// `unix_time_s` is the time in seconds since the Unix epoch, for the age of address tokens.
    pub fn route(
        &mut self,
        now: Instant,
        unix_time_s: u64,
        tuple: FourTuple,
        ecn: Option<EcnCodepoint>,
        datagram: &mut [u8],
        reply: &mut Vec<u8>,
    ) -> Route {
        let arrival = Arrival {
            now,
            unix_time_s,
            tuple,
            ecn,
            is_passed: false,
        };
        self.route_arrived(&arrival, datagram, reply)
    }

    /// [`route`](Self::route) for a datagram that another worker has passed on. The result is never [`Route::Worker`].
    pub fn route_passed(
        &mut self,
        now: Instant,
        unix_time_s: u64,
        tuple: FourTuple,
        ecn: Option<EcnCodepoint>,
        datagram: &mut [u8],
        reply: &mut Vec<u8>,
    ) -> Route {
        let arrival = Arrival {
            now,
            unix_time_s,
            tuple,
            ecn,
            is_passed: true,
        };
        self.route_arrived(&arrival, datagram, reply)
    }

    fn route_arrived(
        &mut self,
        arrival: &Arrival,
        datagram: &mut [u8],
        reply: &mut Vec<u8>,
    ) -> Route {
        let &Arrival { now, tuple, .. } = arrival;
        reply.clear();
        let id_len = self.config.id_len();
        let Some(destination) = packet::destination(datagram, id_len) else {
            return Route::Drop;
        };
        if let Some(handle) = self.routes.find(destination, tuple.remote) {
            return Route::Connection(handle);
        }
        let may_accept = self.may_accept(datagram);
        let parsed = packet::parse(datagram, id_len, self.config.grease_fixed_bit);
        match parsed {
            Ok(Packet::Protected(header)) => match header.kind {
                _ if header.version.is_some_and(|version| self.refuses(version)) => {
                    if !may_accept {
                        return Route::Drop;
                    }
                    let refused = RefusedVersion {
                        version: header.version.map_or(0, Version::number),
                        destination: &header.dcid,
                        source: &header.scid,
                    };
                    self.negotiate_version(now, &refused, reply)
                }
                ProtectedKind::Short => {
                    let reset = self.find_reset(arrival, datagram);
                    reset.unwrap_or_else(|| self.route_unknown(arrival, header, datagram, reply))
                }
                _ => self.route_unknown(arrival, header, datagram, reply),
            },
            Ok(Packet::UnsupportedVersion {
                version,
                dcid,
                scid,
            }) if may_accept => {
                let refused = RefusedVersion {
                    version,
                    destination: dcid,
                    source: scid,
                };
                self.negotiate_version(now, &refused, reply)
            }
            // Any datagram may be a stateless reset.
            Ok(_) | Err(_) => self.find_reset(arrival, datagram).unwrap_or(Route::Drop),
        }
    }

    /// Routes a packet of a connection that this endpoint does not have.
    fn route_unknown(
        &mut self,
        arrival: &Arrival,
        header: ProtectedHeader,
        datagram: &mut [u8],
        reply: &mut Vec<u8>,
    ) -> Route {
        if let Some(worker) = self.other_worker(arrival, &header) {
            self.stats.passed_on += 1;
            return Route::Worker(worker);
        }
        match (header.kind, header.version) {
            (ProtectedKind::Initial { .. }, Some(version)) if self.may_accept(datagram) => {
                let arrived = UnknownInitial {
                    now: arrival.now,
                    unix_time_s: arrival.unix_time_s,
                    tuple: arrival.tuple,
                    ecn: arrival.ecn,
                    version,
                    header,
                };
                self.accept(&arrived, datagram, reply)
            }
            _ if self.has_predecessor => Route::Predecessor,
            (ProtectedKind::Short, _) => {
                self.reset(arrival.now, header.dcid, datagram.len(), reply)
            }
            _ => Route::Drop,
        }
    }

    /// Whether a datagram is long enough to be the first of a client.
    fn may_accept(&self, datagram: &[u8]) -> bool {
        self.server.is_some() && datagram.len() >= usize::from(MIN_DATAGRAM_SIZE)
    }

    /// The connection whose peer has reset it by this datagram.
    fn find_reset(&self, arrival: &Arrival, datagram: &[u8]) -> Option<Route> {
        let token = datagram.last_chunk::<16>()?;
        let at = *self.group.lock().reset_tokens.get(token)?;
        match at.worker == self.worker {
            true => Some(Route::Connection(at.handle)),
            false => (!arrival.is_passed).then_some(Route::Worker(at.worker)),
        }
    }

    /// The other worker that a packet is for, unless one has passed it on: the choice of that worker is final.
    ///
    /// A client chooses the first destination of its packets, which may happen to name a worker. As all workers read the
    /// same number, the client still arrives at one of them.
    fn other_worker(&self, arrival: &Arrival, header: &ProtectedHeader) -> Option<u8> {
        let workers = self.group.workers();
        if workers == 1 || arrival.is_passed {
            return None;
        }
        let is_first = !matches!(header.kind, ProtectedKind::Short);
        let worker = match is_first && self.coordinates_bundles() {
            true => self.worker_of_address(arrival.tuple.remote.ip()),
            false if header.dcid.len() == self.config.id_len() => {
                let field = self.config.worker_field();
                self.config.worker_key.worker(&header.dcid, field)?
            }
            false => return None,
        };
        (worker < workers && worker != self.worker).then_some(worker)
    }

    fn coordinates_bundles(&self) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|server| server.transport.bundle.is_some())
    }

    /// The worker that has all connections from `ip`, and thus all that may be in one bundle.
    fn worker_of_address(&self, ip: IpAddr) -> u8 {
        let ip = match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        self.config.worker_key.select(ip, self.group.workers())
    }
}
