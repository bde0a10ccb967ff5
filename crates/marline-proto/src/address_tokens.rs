//! State of earlier connections that the next connection to a server uses: address tokens (RFC 9000, section 8.1.3),
//! the version in which they were issued (RFC 9369, section 5), and the round-trip time (RFC 9002, section 6.2.2).

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline_wire::Version;

use crate::limits::{ADDRESS_TOKEN_SERVERS, ADDRESS_TOKENS_PER_SERVER, REMEMBERED_RTT_LIFETIME};
use crate::time::Instant;

/// Address validation tokens by server name; each is used once, in the version in which it was issued.
/// Shared by a client's connections.
#[derive(Debug, Default)]
pub struct AddressTokens(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    servers: HashMap<String, Server>,
    /// Names in the order in which they were first seen, the oldest first.
    order: VecDeque<String>,
}

#[derive(Debug, Default)]
struct Server {
    tokens: VecDeque<Token>,
    /// The version of the last connection, if it was recorded.
    version: Option<Version>,
    rtt: Option<MeasuredRtt>,
}

/// A round-trip time to a port of a server, and the time of its measurement.
#[derive(Clone, Copy, Debug)]
struct MeasuredRtt {
    port: u16,
    rtt: Duration,
    at: Instant,
}

#[derive(Debug)]
struct Token {
    version: Version,
    bytes: Vec<u8>,
}

impl Table {
    /// The entry of a server; drops the oldest one above the limit.
    fn server(&mut self, name: &str) -> &mut Server {
        if !self.servers.contains_key(name) {
            if self.order.len() >= ADDRESS_TOKEN_SERVERS
                && let Some(oldest) = self.order.pop_front()
            {
                self.servers.remove(&oldest);
            }
            self.order.push_back(name.to_owned());
        }
        self.servers.entry(name.to_owned()).or_default()
    }
}

impl AddressTokens {
    /// Stores a token that `server` issued in a connection of `version`; drops the oldest ones above the limits.
    pub fn put(&self, server: &str, version: Version, token: &[u8]) {
        let mut table = self.lock();
        let tokens = &mut table.server(server).tokens;
        if tokens.len() >= ADDRESS_TOKENS_PER_SERVER {
            tokens.pop_front();
        }
        tokens.push_back(Token {
            version,
            bytes: token.to_vec(),
        });
    }

    /// Removes and returns the newest token of `server` for a connection that begins with `version`.
    pub fn take(&self, server: &str, version: Version) -> Option<Vec<u8>> {
        let mut table = self.lock();
        let tokens = &mut table.servers.get_mut(server)?.tokens;
        let newest = tokens.iter().rposition(|token| token.version == version)?;
        tokens.remove(newest).map(|token| token.bytes)
    }

    /// Records `version` as that of a connection to `server`: a resumed session must use it too.
    pub(crate) fn set_version(&self, server: &str, version: Version) {
        self.lock().server(server).version = Some(version);
    }

    /// The version of the last connection to `server`, if it was recorded.
    pub(crate) fn version(&self, server: &str) -> Option<Version> {
        self.lock().servers.get(server)?.version
    }

    /// Records the round-trip time of a connection to `server` at `port`.
    pub(crate) fn set_rtt(&self, server: &str, port: u16, rtt: Duration, now: Instant) {
        let measured = MeasuredRtt { port, rtt, at: now };
        self.lock().server(server).rtt = Some(measured);
    }

    /// The round-trip time of the last connection to `server`, if that was to `port` and is recent: another port may
    /// be forwarded to another host.
    pub(crate) fn rtt(&self, server: &str, port: u16, now: Instant) -> Option<Duration> {
        let measured = self.lock().servers.get(server)?.rtt?;
        let is_recent = measured.at <= now && now - measured.at <= REMEMBERED_RTT_LIFETIME;
        (is_recent && measured.port == port).then_some(measured.rtt)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_once_and_the_newest_first() {
        let tokens = AddressTokens::default();
        tokens.put("a", Version::V1, b"1");
        tokens.put("a", Version::V1, b"2");
        let take = |server| tokens.take(server, Version::V1);
        assert_eq!(take("a").as_deref(), Some(&b"2"[..]));
        assert_eq!(take("a").as_deref(), Some(&b"1"[..]));
        assert_eq!(take("a"), None);
        assert_eq!(take("b"), None);
    }

    #[test]
    fn a_token_is_used_in_its_own_version_only() {
        let tokens = AddressTokens::default();
        tokens.put("a", Version::V2, b"2");
        tokens.put("a", Version::V1, b"1");
        assert_eq!(tokens.take("a", Version::V2).as_deref(), Some(&b"2"[..]));
        assert_eq!(tokens.take("a", Version::V2), None);
        assert_eq!(tokens.take("a", Version::V1).as_deref(), Some(&b"1"[..]));
        assert_eq!(tokens.version("a"), None);
        tokens.set_version("a", Version::V2);
        assert_eq!(tokens.version("a"), Some(Version::V2));
    }

    #[test]
    fn a_round_trip_time_is_remembered_for_ten_minutes() {
        let tokens = AddressTokens::default();
        let measured = Instant::EPOCH + Duration::from_secs(60);
        let rtt = Duration::from_millis(40);
        tokens.set_rtt("a", 443, rtt, measured);
        let after = |seconds| tokens.rtt("a", 443, measured + Duration::from_secs(seconds));
        assert_eq!(after(600), Some(rtt));
        assert_eq!(after(601), None);
        assert_eq!(tokens.rtt("b", 443, measured), None);
        assert_eq!(tokens.rtt("a", 8443, measured), None, "another port");
        assert_eq!(tokens.rtt("a", 443, Instant::EPOCH), None, "another clock");
    }

    #[test]
    fn the_tokens_of_the_oldest_server_are_dropped_at_the_limit() {
        let tokens = AddressTokens::default();
        for n in 0..=ADDRESS_TOKEN_SERVERS {
            tokens.put(&n.to_string(), Version::V1, b"t");
        }
        assert_eq!(tokens.take("0", Version::V1), None);
        assert!(tokens.take("1", Version::V1).is_some());
    }
}
