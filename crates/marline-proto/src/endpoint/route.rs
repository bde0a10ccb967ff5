//! Routing of datagrams to connections.

use std::collections::HashMap;
use std::net::SocketAddr;

use marline_wire::packet::{self, Packet, ProtectedKind};
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
    /// By stateless reset token. Tokens are secrets of our peers.
    reset_tokens: HashMap<[u8; 16], ConnectionHandle>,
}

impl Routes {
    pub(super) fn new(id_len: usize) -> Self {
        Self {
            id_len,
            ids: FxHashMap::default(),
            initials: HashMap::new(),
            reset_tokens: HashMap::new(),
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

    pub(super) fn add_reset_token(&mut self, token: [u8; 16], handle: ConnectionHandle) {
        self.reset_tokens.insert(token, handle);
    }

    pub(super) fn remove_reset_token(&mut self, token: &[u8; 16]) {
        self.reset_tokens.remove(token);
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

    fn find_reset(&self, datagram: &[u8]) -> Option<ConnectionHandle> {
        self.reset_tokens.get(datagram.last_chunk::<16>()?).copied()
    }
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
        reply.clear();
        let id_len = self.config.connection_id_len;
        let Some(destination) = packet::destination(datagram, id_len) else {
            return Route::Drop;
        };
        if let Some(handle) = self.routes.find(destination, tuple.remote) {
            return Route::Connection(handle);
        }
        let may_accept = self.server.is_some() && datagram.len() >= usize::from(MIN_DATAGRAM_SIZE);
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
                ProtectedKind::Initial { .. } if may_accept => {
                    let Some(version) = header.version else {
                        return Route::Drop;
                    };
                    let arrived = UnknownInitial {
                        now,
                        unix_time_s,
                        tuple,
                        ecn,
                        version,
                        header,
                    };
                    self.accept(&arrived, datagram, reply)
                }
                ProtectedKind::Short => match self.routes.find_reset(datagram) {
                    Some(handle) => Route::Connection(handle),
                    None => self.reset(now, header.dcid, datagram.len(), reply),
                },
                _ => Route::Drop,
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
            Ok(_) | Err(_) => match self.routes.find_reset(datagram) {
                Some(handle) => Route::Connection(handle),
                None => Route::Drop,
            },
        }
    }
}
