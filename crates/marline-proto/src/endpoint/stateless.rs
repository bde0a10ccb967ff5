//! Answers without a connection: version negotiation, Retry, refusal, stateless reset.

use std::time::Duration;

use marline_wire::frame::ConnectionClose;
use marline_wire::packet::{
    self, LongHeader, LongType, ProtectedHeader, Retry, VERSION_1, VersionNegotiation, retry,
    truncate,
};
use marline_wire::{ConnectionId, ErrorCode, PathId, Side};
use rand::{Rng, RngExt};

use super::{Endpoint, Route};
use crate::crypto::{self, Sealing, TAG_LEN};
use crate::limits::STATELESS_ANSWERS_PER_SECOND;
use crate::time::Instant;
use crate::tuple::FourTuple;

/// The shortest stateless reset that cannot be told from a packet (RFC 9000, section 10.3).
const MIN_RESET: usize = 21;

/// The longest one needed: nobody looks at more.
const MAX_RESET: usize = 42;

/// How many answers that nobody asked for may leave in a second.
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

/// A version that nobody speaks, so that clients learn to ignore those they do not know (RFC 9000,
/// section 15). Never the one that the client asked for: it would ignore the offer.
fn reserved_version(random: u32, refused: u32) -> u32 {
    let version = random & 0xf0f0_f0f0 | 0x0a0a_0a0a;
    if version == refused {
        version ^ 0x1000_0000
    } else {
        version
    }
}

impl Endpoint {
    /// Says which versions we speak (RFC 9000, section 6.1) to a client that asked for `refused`.
    pub(super) fn negotiate_version(
        &mut self,
        now: Instant,
        refused: u32,
        (dcid, scid): (&[u8], &[u8]),
        reply: &mut Vec<u8>,
    ) -> Route {
        if !self.budget.spend(now) {
            return Route::Drop;
        }
        let versions = [VERSION_1, reserved_version(self.rng.random(), refused)];
        VersionNegotiation::encode(scid, dcid, &versions, self.rng.random(), reply);
        Route::Reply
    }

    /// Asks the client to come again with a token (RFC 9000, section 8.1.2).
    pub(super) fn retry(
        &mut self,
        unix_time_s: u64,
        tuple: FourTuple,
        header: &ProtectedHeader,
        reply: &mut Vec<u8>,
    ) -> Route {
        let source = self.new_connection_id();
        let key = &self.config.token_key;
        let token = key.retry(
            tuple.remote,
            &header.dcid,
            &source,
            unix_time_s,
            &mut self.rng,
        );
        Retry::encode_without_tag(header.scid, source, &token, self.rng.random(), reply);
        let tag = crypto::retry_tag(&retry::pseudo_packet(header.dcid, reply));
        reply.extend_from_slice(&tag);
        Route::Reply
    }

    /// Closes an attempt with an Initial packet (RFC 9000, section 5.2.2).
    pub(super) fn refuse(
        &mut self,
        header: &ProtectedHeader,
        error_code: ErrorCode,
        reply: &mut Vec<u8>,
    ) -> Route {
        let keys = crypto::initial_keys(&header.dcid, Side::Server);
        let long = LongHeader {
            kind: LongType::Initial,
            version: VERSION_1,
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

    /// Tells a peer that its connection is gone (RFC 9000, section 10.3): smaller than what came, so
    /// that two endpoints never answer each other's resets forever.
    pub(super) fn reset(
        &mut self,
        now: Instant,
        destination: ConnectionId,
        received: usize,
        reply: &mut Vec<u8>,
    ) -> Route {
        let size = received.saturating_sub(1).min(MAX_RESET);
        if size < MIN_RESET || !self.budget.spend(now) {
            return Route::Drop;
        }
        let token = self.config.reset_key.token(&destination);
        reply.resize(size - token.len(), 0);
        self.rng.fill_bytes(reply);
        reply[0] = reply[0] & 0x3f | 0x40;
        reply.extend_from_slice(&token);
        Route::Reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_versions_follow_the_pattern_and_avoid_what_was_refused() {
        assert_eq!(reserved_version(0x1020_3040, 7), 0x1a2a_3a4a);
        assert_eq!(reserved_version(0x1020_3040, 0x1a2a_3a4a), 0x0a2a_3a4a);
    }
}
