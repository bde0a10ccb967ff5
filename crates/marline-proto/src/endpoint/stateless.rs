//! Responses without a connection: Version Negotiation, Retry, refusal, stateless reset.

use std::time::Duration;

use marline_wire::frame::ConnectionClose;
use marline_wire::packet::{
    self, LongHeader, LongType, Retry, VersionNegotiation, retry, truncate,
};
use marline_wire::{ConnectionId, ErrorCode, PathId, Side};

use super::accept::UnknownInitial;
use super::stats::Refusal;
use super::{Endpoint, Route};
use crate::crypto::{self, Sealing, TAG_LEN};
use crate::limits::STATELESS_ANSWERS_PER_SECOND;
use crate::time::Instant;

/// Minimum size in bytes of a stateless reset that is indistinguishable from a packet (RFC 9000, section 10.3).
const MIN_RESET: usize = 21;

/// Maximum size in bytes of stateless resets that are sent.
const MAX_RESET: usize = 42;

/// Limits the rate of responses to packets of unknown connections.
#[derive(Debug, Default)]
pub(super) struct Budget {
    second: Option<Instant>,
    spent: u32,
}

impl Budget {
    fn spend(&mut self, now: Instant) -> bool {
        if self
            .second
            .is_none_or(|began| now - began >= Duration::from_secs(1))
        {
            *self = Self {
                second: Some(now),
                spent: 0,
            };
        }
        self.spent += 1;
        self.spent <= STATELESS_ANSWERS_PER_SECOND
    }
}

/// A reserved version, so that clients learn to ignore unknown versions (RFC 9000, section 15). Never
/// the one that the client requested, or it would ignore the packet (section 6.2).
fn reserved_version(random: u32, refused: u32) -> u32 {
    let version = random & 0xf0f0_f0f0 | 0x0a0a_0a0a;
    if version == refused {
        version ^ 0x1000_0000
    } else {
        version
    }
}

/// The fields of a refused packet that a Version Negotiation packet repeats.
pub(super) struct RefusedVersion<'a> {
    pub(super) version: u32,
    /// Its destination connection ID.
    pub(super) destination: &'a [u8],
    /// Its source connection ID.
    pub(super) source: &'a [u8],
}

impl Endpoint {
    /// Responds with the supported versions (RFC 9000, section 6.1).
    pub(super) fn negotiate_version(
        &mut self,
        now: Instant,
        refused: &RefusedVersion<'_>,
        reply: &mut Vec<u8>,
    ) -> Route {
        if !self.group.lock().budget.spend(now) {
            return Route::Drop;
        }
        let server = self.server.as_ref();
        let mut versions = server.map_or_else(Vec::new, |server| server.versions.numbers());
        versions.push(reserved_version(self.rng.word(), refused.version));
        let (to, from) = (refused.source, refused.destination);
        VersionNegotiation::encode(to, from, &versions, self.rng.byte(), reply);
        Route::Reply
    }

    /// Validates the client's address with a Retry packet (RFC 9000, section 8.1.2) of the same version (RFC
    /// 9369, section 4.1).
    pub(super) fn retry(&mut self, arrived: &UnknownInitial, reply: &mut Vec<u8>) -> Route {
        let UnknownInitial {
            version, header, ..
        } = arrived;
        self.stats.retries += 1;
        let source = self.new_connection_id();
        let key = &self.config.token_key;
        let token = key.retry(
            *version,
            arrived.tuple.remote,
            &header.dcid,
            &source,
            arrived.unix_time_s,
            &mut self.rng,
        );
        let random = self.rng.byte();
        Retry::encode_without_tag(*version, header.scid, source, &token, random, reply);
        let tag = crypto::retry_tag(*version, &retry::pseudo_packet(header.dcid, reply));
        reply.extend_from_slice(&tag);
        Route::Reply
    }

    /// Closes an attempt with an Initial packet (RFC 9000, section 5.2.2).
    pub(super) fn refuse(
        &mut self,
        arrived: &UnknownInitial,
        reason: Refusal,
        reply: &mut Vec<u8>,
    ) -> Route {
        self.stats.refused.count(reason);
        let error_code = match reason {
            Refusal::InvalidToken => ErrorCode::INVALID_TOKEN,
            Refusal::Internal => ErrorCode::INTERNAL_ERROR,
            _ => ErrorCode::CONNECTION_REFUSED,
        };
        let header = &arrived.header;
        let keys = crypto::initial_keys(arrived.version, &header.dcid, Side::Server);
        let long = LongHeader {
            kind: LongType::Initial,
            version: arrived.version.number(),
            dcid: header.scid,
            scid: self.new_connection_id(),
            token: &[],
        };
        let end = long.encode(truncate(0, None), false, reply);
        ConnectionClose {
            error_code,
            frame_type: 0,
            reason: &[],
        }
        .encode(reply);
        let length = reply.len() + TAG_LEN - end.number_offset;
        packet::patch_length(reply, end.length_offset, length);
        let sealing = Sealing {
            path_id: PathId::INITIAL,
            number: 0,
            packet_start: 0,
            number_offset: end.number_offset,
            payload_offset: end.payload_offset,
        };
        crypto::seal(&keys.local, sealing, reply);
        Route::Reply
    }

    /// Responds with a stateless reset (RFC 9000, section 10.3). It is smaller than the received
    /// packet, to prevent loops between two endpoints.
    pub(super) fn reset(
        &mut self,
        now: Instant,
        destination: ConnectionId,
        received: usize,
        reply: &mut Vec<u8>,
    ) -> Route {
        let size = received.saturating_sub(1).min(MAX_RESET);
        if size < MIN_RESET || !self.group.lock().budget.spend(now) {
            return Route::Drop;
        }
        let token = self.config.reset_key.token(&destination);
        reply.resize(size - token.len(), 0);
        self.rng.fill(reply);
        reply[0] = reply[0] & 0x3f | 0x40;
        reply.extend_from_slice(&token);
        Route::Reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_versions_follow_the_pattern_and_differ_from_the_refused_one() {
        assert_eq!(reserved_version(0x1020_3040, 7), 0x1a2a_3a4a);
        assert_eq!(reserved_version(0x1020_3040, 0x1a2a_3a4a), 0x0a2a_3a4a);
    }
}
