//! New clients: address validation, refusal, acceptance (RFC 9000, sections 5.2.2 and 8.1).

use std::net::IpAddr;
use std::sync::Arc;

use marline_wire::packet::ProtectedHeader;
use marline_wire::{ConnectionId, Version};

use super::clients::{ClientId, HandshakeProgress};
use super::evict::Place;
use super::group::GroupState;
use super::stats::Refusal;
use super::{Endpoint, Route};
use crate::config::{RetryPolicy, ServerConfig};
use crate::connection::Connection;
use crate::crypto::{Token, TokenCapacity, TokenError};
use crate::establish::Incoming;
use crate::time::Instant;
use crate::tuple::{EcnCodepoint, FourTuple};

/// An Initial packet that belongs to no connection.
pub(super) struct UnknownInitial {
    pub(super) now: Instant,
    pub(super) unix_time_s: u64,
    pub(super) tuple: FourTuple,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) version: Version,
    pub(super) header: ProtectedHeader,
}

/// The information that the token of an Initial packet proves.
#[derive(Default)]
struct Proof {
    validated: bool,
    /// The capacity of its path in the client's token.
    capacity: Option<TokenCapacity>,
    /// The Retry packet that it answers, if any.
    retried: Option<Retried>,
}

/// Connection IDs of a Retry packet, from its token.
struct Retried {
    /// Destination connection ID of the client's first packet.
    original_destination: ConnectionId,
    /// Source connection ID of the Retry packet.
    source: ConnectionId,
}

/// A client that is counted.
struct Admitted {
    place: Place,
    client: ClientId,
}

/// The decision on a new client.
enum Admission {
    Accept(Admitted),
    /// The client has to validate its address.
    Retry,
    Refuse(Refusal),
}

/// The token of a Retry packet is invalid: the attempt ends.
struct InvalidToken;

impl Endpoint {
    pub(super) fn accept(
        &mut self,
        arrived: &UnknownInitial,
        datagram: &mut [u8],
        reply: &mut Vec<u8>,
    ) -> Route {
        let Some(server) = self.server.clone() else {
            return Route::Drop;
        };
        let header = &arrived.header;
        let Ok(proof) = self.check_token(arrived, header.token(datagram)) else {
            return self.refuse(arrived, Refusal::InvalidToken, reply);
        };
        // RFC 9000, section 7.2: a client's first destination has at least 8 bytes.
        if proof.retried.is_none() && header.dcid.len() < 8 {
            return Route::Drop;
        }
        let ip = arrived.tuple.remote.ip();
        let admitted = match self.admit(&server, ip, proof.validated) {
            Admission::Accept(admitted) => admitted,
            Admission::Retry => return self.retry(arrived, reply),
            Admission::Refuse(reason) => return self.refuse(arrived, reason, reply),
        };
        let local_cid = self.new_connection_id();
        let retried = proof.retried.as_ref();
        let incoming = Incoming {
            version: arrived.version,
            tuple: arrived.tuple,
            original_destination: retried.map_or(header.dcid, |retry| retry.original_destination),
            destination: header.dcid,
            source: header.scid,
            retry_source: retried.map(|retry| retry.source),
            validated: proof.validated,
            capacity: proof.capacity,
            local_cid,
            unix_time_s: arrived.unix_time_s,
            rng: self.rng.fork(),
        };
        let endpoint = Arc::clone(&self.config);
        let accepted = Connection::accept_from(arrived.now, endpoint, &server, incoming);
        let Ok(mut connection) = accepted else {
            self.give_back(&admitted);
            return self.refuse(arrived, Refusal::Internal, reply);
        };
        let original = self.has_predecessor.then(|| datagram.to_vec());
        connection.handle_datagram(arrived.now, arrived.tuple, arrived.ecn, datagram);
        if !connection.has_opened_packet() {
            self.give_back(&admitted);
            // It may belong to a handshake with the predecessor, whose keys it then has.
            return match original {
                Some(original) => {
                    datagram.copy_from_slice(&original);
                    Route::Predecessor
                }
                None => Route::Drop,
            };
        }
        if admitted.place == Place::OfAnother && !self.evict_idle_for(ip) {
            self.give_back(&admitted);
            return self.refuse(arrived, Refusal::Connections, reply);
        }
        let remote = arrived.tuple.remote;
        let client = Some(admitted.client);
        let handle = self.insert(Some(header.dcid), local_cid, remote, client);
        self.stats.accepted += 1;
        self.drain_events(handle, &mut connection);
        Route::Accepted(handle, Box::new(connection))
    }

    /// Decides whether another client is admitted, and counts it then. No client loses its place to one whose address may
    /// be spoofed.
    fn admit(&self, server: &ServerConfig, ip: IpAddr, is_validated: bool) -> Admission {
        if server.max_connections == 0 {
            return Admission::Refuse(Refusal::Connections);
        }
        let mut state = self.group.lock();
        if !is_validated && wants_retry(&state, server) {
            return Admission::Retry;
        }
        let limits = &self.config.clients;
        let exceeded = state.clients.exceeded(limits, ip, is_validated);
        let place = state.place(limits, server, ip);
        let may_retry = !is_validated && server.retry != RetryPolicy::Never;
        let place = match (exceeded, place) {
            (None, Some(Place::Free)) => Place::Free,
            _ if may_retry => return Admission::Retry,
            (Some(reason), _) => return Admission::Refuse(reason),
            (None, Some(place)) if is_validated => place,
            (None, _) => return Admission::Refuse(Refusal::Connections),
        };
        let progress = match is_validated {
            true => HandshakeProgress::Validated,
            false => HandshakeProgress::Unvalidated,
        };
        state.connections += 1;
        state.handshakes += 1;
        Admission::Accept(Admitted {
            place,
            client: state.clients.add(ip, progress),
        })
    }

    /// Stops counting a client that has no connection after all.
    fn give_back(&self, admitted: &Admitted) {
        let mut state = self.group.lock();
        state.connections -= 1;
        state.handshakes -= 1;
        state.clients.remove(admitted.client);
    }

    /// Checks the token of an Initial packet. An invalid NEW_TOKEN token is ignored (RFC 9000, section 8.1.3).
    fn check_token(
        &mut self,
        arrived: &UnknownInitial,
        token: &[u8],
    ) -> Result<Proof, InvalidToken> {
        if token.is_empty() {
            return Ok(Proof::default());
        }
        let dcid = &arrived.header.dcid;
        let key = &self.config.token_key;
        let opened = key.open(
            arrived.version,
            token,
            arrived.tuple.remote,
            dcid,
            arrived.unix_time_s,
        );
        match opened {
            Ok(Token::Retry {
                original_dcid,
                retry_scid,
            }) => Ok(Proof {
                validated: true,
                retried: Some(Retried {
                    original_destination: original_dcid,
                    source: retry_scid,
                }),
                ..Proof::default()
            }),
            Ok(Token::NewToken {
                id,
                issued,
                capacity,
            }) => {
                let validated = self.group.lock().replays.first_use(id, issued);
                Ok(Proof {
                    validated,
                    capacity: capacity.filter(|_| validated),
                    ..Proof::default()
                })
            }
            Err(TokenError::Retry(_)) => Err(InvalidToken),
            Err(_) => Ok(Proof::default()),
        }
    }
}

fn wants_retry(state: &GroupState, server: &ServerConfig) -> bool {
    match server.retry {
        RetryPolicy::Never => false,
        RetryPolicy::Always => true,
        RetryPolicy::WhenBusy { handshakes } => state.handshakes >= handshakes,
    }
}
