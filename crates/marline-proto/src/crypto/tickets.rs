//! Stateless TLS session tickets (RFC 8446, section 4.6.1; RFC 5077).

use std::time::Duration;

use rustls::crypto::SecureRandom;
use rustls::server::ProducesTickets;

use super::provider::{TOKEN_RANDOM_LEN, default_provider};
use super::rotation::RotatingCipher;
use crate::limits::MAX_TICKET_LEN;

/// The key that seals the session tickets of a TLS server: its `ticketer` in rustls. Servers that share it can resume
/// each other's sessions, and a server that keeps it across restarts its own.
///
/// The secret decrypts recorded connections that were resumed without a new key exchange: replace it regularly with
/// [`rotate`](Self::rotate), and delete old ones. rustls does not accept 0-RTT with such tickets, which can be used
/// more than once.
pub struct TicketKey {
    ciphers: RotatingCipher,
    random: &'static dyn SecureRandom,
    lifetime: Duration,
}

impl TicketKey {
    /// The key made of `secret`. Tickets announce `lifetime`, the time between two rotations, of at most a week (RFC
    /// 8446, section 4.6.1).
    pub fn new(secret: &[u8; 32], lifetime: Duration) -> Self {
        Self {
            ciphers: RotatingCipher::new(secret),
            random: default_provider().secure_random,
            lifetime,
        }
    }

    /// Seals with `secret` from now on; tickets of the previous secret are still accepted.
    pub fn rotate(&self, secret: &[u8; 32]) {
        self.ciphers.rotate(secret);
    }
}

impl ProducesTickets for TicketKey {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.lifetime.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut random = [0; TOKEN_RANDOM_LEN];
        self.random.fill(&mut random).ok()?;
        Some(self.ciphers.seal(random, plain))
    }

    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        if sealed.len() > MAX_TICKET_LEN {
            return None;
        }
        let mut buf = vec![0; sealed.len()];
        let opened = self.ciphers.open(sealed, &mut buf)?;
        Some(opened.plain.to_vec())
    }
}

impl std::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TicketKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn tickets_are_valid_until_the_second_rotation_after_them() {
        let key = TicketKey::new(&[1; 32], DAY);
        assert!(key.enabled());
        assert_eq!(key.lifetime(), 24 * 3600);
        let ticket = key.encrypt(b"session").unwrap();
        assert_ne!(key.encrypt(b"session").unwrap(), ticket);
        assert_eq!(key.decrypt(&ticket).unwrap(), b"session");
        key.rotate(&[2; 32]);
        assert_eq!(key.decrypt(&ticket).unwrap(), b"session");
        assert_eq!(key.decrypt(&key.encrypt(b"new").unwrap()).unwrap(), b"new");
        key.rotate(&[3; 32]);
        assert_eq!(key.decrypt(&ticket), None);
    }

    #[test]
    fn a_server_with_the_same_secret_accepts_tickets_and_another_does_not() {
        let ticket = TicketKey::new(&[1; 32], DAY).encrypt(b"session").unwrap();
        let same = TicketKey::new(&[1; 32], DAY);
        assert_eq!(same.decrypt(&ticket).unwrap(), b"session");
        assert_eq!(TicketKey::new(&[2; 32], DAY).decrypt(&ticket), None);
    }

    #[test]
    fn tickets_that_were_not_sealed_are_refused() {
        let key = TicketKey::new(&[1; 32], DAY);
        for sealed in [&[][..], &[0; 10], &[0; 200], &vec![0; MAX_TICKET_LEN + 1]] {
            assert_eq!(key.decrypt(sealed), None, "{} bytes", sealed.len());
        }
    }
}
