//! Keys that several servers derive from one secret.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::{EndpointConfig, ResetKey, TicketKey, TokenKey, hmac_sha256};

use super::StateError;
use super::files;
use super::keys::ROTATION;

/// The least length of a secret, in bytes of text.
const MIN_SECRET: usize = 32;

/// The keys of servers behind one address, which they derive from a secret that all of them have: each accepts the address
/// tokens and the session tickets of the others, and can reset their connections.
///
/// Keys of tokens and tickets change every day at midnight in UTC; those of the day before are still accepted. The key of
/// stateless resets stays.
pub struct SharedKeys {
    secret: String,
    /// Days since 1970.
    day: Mutex<u64>,
    tokens: Arc<TokenKey>,
    tickets: Arc<TicketKey>,
}

impl SharedKeys {
    /// The keys of the secret in the file at `path`, which has at least 32 bytes of text, at `unix_time` since 1970.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or it is too short.
    pub fn read(path: &Path, unix_time: Duration) -> Result<Self, StateError> {
        let secret = read_secret(path)?;
        if secret.len() < MIN_SECRET {
            let reason = format!(
                "it has {} bytes, and needs {MIN_SECRET}; `openssl rand -base64 32` makes one",
                secret.len()
            );
            return Err(StateError::secret(path, reason));
        }
        let day = day_of(unix_time);
        let before = day.saturating_sub(1);
        let keys = Self {
            tokens: Arc::new(TokenKey::new(&of_day(&secret, "address tokens", before))),
            tickets: Arc::new(TicketKey::new(
                &of_day(&secret, "session tickets", before),
                ROTATION,
            )),
            secret,
            day: Mutex::new(day),
        };
        keys.use_day(day);
        Ok(keys)
    }

    /// Takes the keys of the present day. Returns when to call this again.
    pub(in crate::server) fn rotate(&self, unix_time: Duration) -> Duration {
        let today = day_of(unix_time);
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        if *day != today {
            // The clock may have changed by more than a day.
            if *day + 1 != today {
                self.use_day(today.saturating_sub(1));
            }
            self.use_day(today);
            *day = today;
        }
        Duration::from_secs((today + 1) * ROTATION.as_secs()).saturating_sub(unix_time)
    }

    fn use_day(&self, day: u64) {
        self.tokens
            .rotate(&of_day(&self.secret, "address tokens", day));
        self.tickets
            .rotate(&of_day(&self.secret, "session tickets", day));
    }

    /// Gives an endpoint the keys: that of the address with this number among those that a server listens on, which is the same
    /// on all servers.
    ///
    /// The key of stateless resets depends on the number, as that of a [`StateDirectory`](super::StateDirectory) on the
    /// address. It is shared only where a balancer reads the server from connection IDs: by any other, an attacker could have
    /// one server reset a connection of another (RFC 9000, section 21.11).
    pub(in crate::server) fn set_keys(&self, config: &mut EndpointConfig, listener: usize) {
        config.token_key = Arc::clone(&self.tokens);
        if config.quic_lb.is_some() {
            let purpose = format!("stateless reset {listener}");
            let secret = hmac_sha256(self.secret.as_bytes(), purpose.as_bytes());
            config.reset_key = Arc::new(ResetKey::new(&secret));
        }
    }

    /// The key of session tickets, over QUIC and TCP.
    pub(in crate::server) fn tickets(&self) -> Arc<TicketKey> {
        Arc::clone(&self.tickets)
    }
}

impl std::fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedKeys")
    }
}

/// The text of the secret in the file at `path`, without the end of its line.
///
/// # Errors
/// The file cannot be read, or others can read it.
pub fn read_secret(path: &Path) -> Result<String, StateError> {
    match files::read(path) {
        Ok(Some(text)) => Ok(text.trim().to_owned()),
        Ok(None) => Err(StateError::secret(path, "there is no such file")),
        Err(StateError::Io { cause, .. }) => Err(StateError::secret(path, cause.to_string())),
        Err(StateError::Malformed { reason, .. }) => Err(StateError::secret(path, reason)),
        Err(error) => Err(error),
    }
}

fn day_of(unix_time: Duration) -> u64 {
    unix_time.as_secs() / ROTATION.as_secs()
}

fn of_day(secret: &str, purpose: &str, day: u64) -> [u8; 32] {
    hmac_sha256(secret.as_bytes(), format!("{purpose} {day}").as_bytes())
}

#[cfg(test)]
mod tests {
    use rustls::server::ProducesTickets;

    use super::*;
    use crate::server::state::files::Existing;

    const NOON: Duration = Duration::from_secs(20_000 * 86_400 + 43_200);
    const DAY: Duration = ROTATION;

    fn keys(secret: &str, unix_time: Duration) -> Result<SharedKeys, StateError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        files::write(&path, secret.as_bytes(), Existing::Replace).unwrap();
        SharedKeys::read(&path, unix_time)
    }

    #[test]
    fn servers_with_one_secret_accept_tickets_of_each_other_for_a_day_and_a_part() {
        let secret = "a".repeat(32);
        let [one, other] = [0, 1].map(|_| keys(&format!("{secret}\n"), NOON).unwrap());
        let stranger = keys(&"b".repeat(32), NOON).unwrap();
        let ticket = one.tickets.encrypt(b"session").unwrap();
        assert_eq!(other.tickets.decrypt(&ticket).unwrap(), b"session");
        assert_eq!(stranger.tickets.decrypt(&ticket), None);
        // Midnight is half a day away.
        assert_eq!(other.rotate(NOON), DAY / 2);
        assert_eq!(other.rotate(NOON + DAY / 2), DAY);
        assert_eq!(other.tickets.decrypt(&ticket).unwrap(), b"session");
        let late = keys(&secret, NOON + DAY).unwrap();
        assert_eq!(late.tickets.decrypt(&ticket).unwrap(), b"session");
        assert_eq!(one.rotate(NOON + 2 * DAY), DAY / 2);
        assert_eq!(one.tickets.decrypt(&ticket), None);
        // A clock that is set back.
        one.rotate(NOON);
        assert_eq!(one.tickets.decrypt(&ticket).unwrap(), b"session");
    }

    #[test]
    fn the_key_of_resets_is_shared_where_connection_ids_name_the_server() {
        let keys = keys(&"a".repeat(32), NOON).unwrap();
        let id = marline::ConnectionId::new(&[1; 8]).unwrap();
        let token = |quic_lb, listener, seed| {
            let mut config = EndpointConfig::from_seed([seed; 32]);
            config.quic_lb = quic_lb;
            keys.set_keys(&mut config, listener);
            config.reset_key.token(&id)
        };
        let balanced = || {
            let format = marline::QuicLbFormat::new(0, 1, 8, None).unwrap();
            let server = marline::ServerId::new(&[1]).unwrap();
            let config = marline::QuicLbConfig::new(format, server, false).unwrap();
            Some(Arc::new(marline::QuicLb::new(config, &[0; 32])))
        };
        assert_eq!(token(balanced(), 0, 1), token(balanced(), 0, 2));
        assert_ne!(token(balanced(), 0, 1), token(balanced(), 1, 1));
        assert_ne!(token(None, 0, 1), token(None, 0, 2));
    }

    #[test]
    fn a_secret_that_is_short_missing_or_open_is_refused_by_its_name() {
        let error = keys("short", NOON).unwrap_err().to_string();
        assert!(error.contains("it has 5 bytes, and needs 32"), "{error}");
        let error = read_secret(Path::new("/nonexistent/secret")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/secret"), "{error}");
    }
}
