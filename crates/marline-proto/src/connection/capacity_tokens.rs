//! The capacity of a path in address tokens, from which a server that keeps no memory of its clients can
//! resume carefully (RFC 9959).
//!
//! The capacity is sealed in the token: only the server reads it, and accepts it from the address to which the
//! token was issued. A token is used once. Of all tokens that state the capacity of one connection's path, one is
//! claimed before a jump (section 3.2).

use std::time::Duration;

use super::{Connection, ServerSide};
use crate::congestion::MAXIMUM_WINDOW;
use crate::coordination::careful_resume::{Capacity, CarefulResumeConfig};
use crate::coordination::history::SampleEvent;
use crate::crypto::TokenCapacity;
use crate::limits::CAPACITY_TOKENS;
use crate::time::Instant;

/// The smallest window that is saved, in initial windows (section 3.1).
const MIN_SAVED_WINDOW: u64 = 4;

/// Round trips for which a path must carry at most half the capacity in its token before another token replaces
/// it: a window reduced after a loss, or to measure the minimum round-trip time, soon grows again.
const REDUCED_ROUND_TRIPS: u32 = 10;

/// The capacities in address tokens for the present path.
#[derive(Debug, Default)]
pub(super) struct CapacityTokens {
    /// The capacity in the client's token, until this connection claims it.
    received: Option<TokenCapacity>,
    /// The capacity in the newest token of this connection.
    issued: Option<TokenCapacity>,
    /// Time since which the path has carried at most half the capacity in the newest token.
    reduced_since: Option<Instant>,
    /// Number of tokens issued because the capacity changed.
    pub(super) issued_count: u8,
}

impl CapacityTokens {
    /// Keeps the capacity in the client's token, unless `config` does not use tokens, or it is too old at `now`
    /// (seconds since the Unix epoch).
    pub(super) fn new(
        config: &CarefulResumeConfig,
        received: Option<TokenCapacity>,
        now: u64,
    ) -> Self {
        let holds =
            |capacity: &TokenCapacity| config.tokens && capacity.age(now) <= config.lifetime;
        Self {
            received: received.filter(holds),
            ..Self::default()
        }
    }

    /// Discards all state except the count of tokens, because the connection migrates to another path.
    fn leave_path(&mut self) {
        *self = Self {
            issued_count: self.issued_count,
            ..Self::default()
        };
    }

    /// The capacity that a token issued now states.
    fn current(&self) -> Option<TokenCapacity> {
        self.issued.or(self.received)
    }

    /// Whether a path with an initial window of `first` bytes and an observed `window` needs a new token.
    fn needs_token(&mut self, now: Instant, first: u64, window: u64, rtt: Duration) -> bool {
        let Some(current) = self.current() else {
            return window >= first.saturating_mul(MIN_SAVED_WINDOW);
        };
        if window > current.window / 2 {
            self.reduced_since = None;
            return window >= current.window.saturating_mul(2);
        }
        let since = *self.reduced_since.get_or_insert(now);
        now - since >= rtt.saturating_mul(REDUCED_ROUND_TRIPS)
    }
}

impl ServerSide {
    /// Seconds since the Unix epoch, in a connection that began `age` ago.
    fn unix_time_s(&self, age: Duration) -> u64 {
        self.unix_time_s.saturating_add(age.as_secs())
    }
}

impl Connection {
    /// The capacity in the client's token, if it is recent enough.
    pub(super) fn client_capacity(&self, now: Instant) -> Option<Capacity> {
        let server = self.server.as_ref()?;
        let received = server.capacity_tokens.received?;
        let age = received.age(server.unix_time_s(now - self.establishment.progress().began()));
        (age <= self.config.careful_resume.lifetime).then_some(Capacity {
            window: received.window.min(MAXIMUM_WINDOW),
            rtt: received.rtt,
            at: now - age,
            model: received.model,
        })
    }

    /// Claims the capacity in the client's token for this connection; `None` if another one has claimed it.
    pub(super) fn claim_client_capacity(&mut self, now: Instant) -> Option<Capacity> {
        let capacity = self.client_capacity(now);
        let received = self.server.as_mut()?.capacity_tokens.received.take()?;
        capacity.filter(|_| self.endpoint.token_key.claim(&received))
    }

    /// Discards the capacities in tokens: the connection migrates to another path.
    pub(super) fn forget_client_capacity(&mut self) {
        if let Some(server) = &mut self.server {
            server.capacity_tokens.leave_path();
        }
    }

    /// Announces a NEW_TOKEN frame, whose token validates the client's address in a later connection.
    pub(super) fn issue_address_token(&mut self, now: Instant) {
        let Some(server) = &self.server else {
            return;
        };
        if server.config.address_tokens {
            let ip = self.paths.main().tuples.active.addresses.remote.ip();
            let unix_time_s = server.unix_time_s(now - self.establishment.progress().began());
            let capacity = server.capacity_tokens.current();
            let key = &self.endpoint.token_key;
            let version = self.establishment.versions().format();
            let rng = self.rng.secure();
            let token = key.new_token(version, ip, unix_time_s, capacity.as_ref(), rng);
            self.announcements.new_token.announce(token);
        }
    }

    /// Called after an acknowledgment: issues another token if the capacity of the path differs much from that
    /// in the newest one.
    pub(super) fn renew_capacity_token(&mut self, now: Instant) {
        if !self.config.careful_resume.tokens || !self.establishment.progress().is_complete() {
            return;
        }
        let Some(server) = &mut self.server else {
            return;
        };
        let path = &self.paths[self.paths.main_slot()];
        let is_validated = path.tuples.active.amplification.is_validated();
        let tokens = &mut server.capacity_tokens;
        if tokens.issued_count >= CAPACITY_TOKENS
            || !is_validated
            || !path.recovery.rtt().has_sample()
        {
            return;
        }
        let sample = path.sample(SampleEvent::Resumed);
        let current = tokens.current().map(|current| current.window);
        let Some(found) = sample.capacity(now, current) else {
            return;
        };
        let rtt = path.recovery.rtt().smoothed();
        if !tokens.needs_token(now, sample.initial_window, found.window, rtt) {
            return;
        }
        let source = match tokens.issued {
            Some(issued) => issued.source,
            None => self.rng.number(),
        };
        tokens.issued_count += 1;
        tokens.reduced_since = None;
        let observed = server.unix_time_s(now - self.establishment.progress().began());
        server.capacity_tokens.issued = Some(TokenCapacity {
            window: found.window,
            rtt: found.rtt,
            observed,
            source,
            model: found.model,
        });
        self.issue_address_token(now);
    }
}

#[cfg(test)]
mod tests;
