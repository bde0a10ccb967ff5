//! What a server's clients carry of their paths to their next connections, for careful resume (RFC 9959).
//!
//! It travels in address tokens, sealed: only the server reads it, and believes it from the address that it
//! was made for. A token is used once, and of all tokens that tell of one connection's path one is claimed
//! before a jump, as section 3.2 wants it.

use std::time::Duration;

use super::{Connection, ServerSide};
use crate::congestion::MAXIMUM_WINDOW;
use crate::coordination::careful_resume::{Capacity, CarefulResumeConfig};
use crate::coordination::history::SampleEvent;
use crate::crypto::Carried;
use crate::limits::CAPACITY_TOKENS;
use crate::time::Instant;

/// A window that is smaller than so many first ones is not worth returning to (section 3.1).
const WORTH: u64 = 4;

/// A path carries less than its client was told once it has for so many round trips: a window that is
/// reduced after a loss, or to find out how long a round trip is, soon comes back.
const LESS_FOR: u32 = 10;

/// What of the present path is in the client's hands.
#[derive(Debug, Default)]
pub(super) struct Carry {
    /// What it brought, until this connection claims it.
    brought: Option<Carried>,
    /// What was found here, as the newest token tells.
    given: Option<Carried>,
    /// Since when the path carries half of what the token tells, or less.
    less_since: Option<Instant>,
    /// Tokens given for what was found.
    pub(super) tokens: u8,
}

impl Carry {
    /// With what a client brought, if the server heeds it.
    pub(super) fn new(config: &CarefulResumeConfig, brought: Option<Carried>, now: u64) -> Self {
        let holds = |brought: &Carried| config.tokens && brought.age(now) <= config.lifetime;
        Self {
            brought: brought.filter(holds),
            ..Self::default()
        }
    }

    fn leave_path(&mut self) {
        *self = Self {
            tokens: self.tokens,
            ..Self::default()
        };
    }

    /// What a token tells now.
    fn told(&self) -> Option<Carried> {
        self.given.or(self.brought)
    }

    /// Whether a path that begins with `first` bytes, and was found to carry `window`, is worth a token.
    fn is_news(&mut self, now: Instant, first: u64, window: u64, rtt: Duration) -> bool {
        let Some(told) = self.told() else {
            return window >= first.saturating_mul(WORTH);
        };
        if window > told.window / 2 {
            self.less_since = None;
            return window >= told.window.saturating_mul(2);
        }
        let since = *self.less_since.get_or_insert(now);
        now - since >= rtt.saturating_mul(LESS_FOR)
    }
}

impl ServerSide {
    /// Seconds since the Unix epoch, in a connection that began `age` ago.
    fn unix_time_s(&self, age: Duration) -> u64 {
        self.unix_time_s.saturating_add(age.as_secs())
    }
}

impl Connection {
    /// What the client brought of the path, if that still holds.
    pub(super) fn brought(&self, now: Instant) -> Option<Capacity> {
        let server = self.server.as_ref()?;
        let carried = server.carry.brought?;
        let age = carried.age(server.unix_time_s(now - self.progress.began()));
        (age <= self.config.careful_resume.lifetime).then_some(Capacity {
            window: carried.window.min(MAXIMUM_WINDOW),
            rtt: carried.rtt,
            at: now - age,
        })
    }

    /// Takes what the client brought for this connection; `None` if another one has.
    pub(super) fn claim_brought(&mut self, now: Instant) -> Option<Capacity> {
        let capacity = self.brought(now);
        let carried = self.server.as_mut()?.carry.brought.take()?;
        capacity.filter(|_| self.endpoint.token_key.claim(&carried))
    }

    /// The path is another one from now on.
    pub(super) fn leave_carry(&mut self) {
        if let Some(server) = &mut self.server {
            server.carry.leave_path();
        }
    }

    /// Gives the client a token that validates its address the next time.
    pub(super) fn give_address_token(&mut self, now: Instant) {
        let Some(server) = &self.server else {
            return;
        };
        if server.config.address_tokens {
            let ip = self.paths.main().tuples.active.addresses.remote.ip();
            let unix_time_s = server.unix_time_s(now - self.progress.began());
            let told = server.carry.told();
            let key = &self.endpoint.token_key;
            let token = key.new_token(ip, unix_time_s, told.as_ref(), self.rng.inner());
            self.announcements.new_token.announce(token);
        }
    }

    /// Something was acknowledged: gives the client another token if its path turns out to carry much more
    /// or less than the last one tells.
    pub(super) fn tell_client_of_path(&mut self, now: Instant) {
        if !self.config.careful_resume.tokens || !self.progress.is_complete() {
            return;
        }
        let Some(server) = &mut self.server else {
            return;
        };
        let path = &self.paths[self.paths.main_slot()];
        let is_proven = path.tuples.active.amplification.is_validated();
        if server.carry.tokens >= CAPACITY_TOKENS || !is_proven || !path.recovery.rtt().has_sample()
        {
            return;
        }
        let sample = path.sample(SampleEvent::Resumed);
        let told = server.carry.told().map(|told| told.window);
        let Some(found) = sample.capacity(now, told) else {
            return;
        };
        let rtt = path.recovery.rtt().smoothed();
        let carry = &mut server.carry;
        if !carry.is_news(now, sample.initial_window, found.window, rtt) {
            return;
        }
        let source = match carry.given {
            Some(given) => given.source,
            None => self.rng.number(),
        };
        carry.tokens += 1;
        carry.less_since = None;
        let observed = server.unix_time_s(now - self.progress.began());
        server.carry.given = Some(Carried {
            window: found.window,
            rtt: found.rtt,
            observed,
            source,
        });
        self.give_address_token(now);
    }
}

#[cfg(test)]
mod tests;
