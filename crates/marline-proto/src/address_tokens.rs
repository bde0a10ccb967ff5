//! Address tokens from servers, for the next connection to them (RFC 9000, section 8.1.3).

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::{ADDRESS_TOKEN_SERVERS, ADDRESS_TOKENS_PER_SERVER};

/// Address validation tokens by server name; each is used once. Shared by a client's connections.
#[derive(Debug, Default)]
pub struct AddressTokens(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    tokens: HashMap<String, VecDeque<Vec<u8>>>,
    /// Names in the order in which they were first seen, the oldest first.
    order: VecDeque<String>,
}

impl AddressTokens {
    /// Stores a token of `server`; drops the oldest ones above the limits.
    pub fn put(&self, server: &str, token: &[u8]) {
        let mut table = self.lock();
        if !table.tokens.contains_key(server) {
            if table.order.len() >= ADDRESS_TOKEN_SERVERS
                && let Some(oldest) = table.order.pop_front()
            {
                table.tokens.remove(&oldest);
            }
            table.order.push_back(server.to_owned());
        }
        let tokens = table.tokens.entry(server.to_owned()).or_default();
        if tokens.len() >= ADDRESS_TOKENS_PER_SERVER {
            tokens.pop_front();
        }
        tokens.push_back(token.to_vec());
    }

    /// Removes and returns the newest token of `server`.
    pub fn take(&self, server: &str) -> Option<Vec<u8>> {
        self.lock().tokens.get_mut(server)?.pop_back()
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
        tokens.put("a", b"1");
        tokens.put("a", b"2");
        assert_eq!(tokens.take("a").as_deref(), Some(&b"2"[..]));
        assert_eq!(tokens.take("a").as_deref(), Some(&b"1"[..]));
        assert_eq!(tokens.take("a"), None);
        assert_eq!(tokens.take("b"), None);
    }

    #[test]
    fn the_tokens_of_the_oldest_server_are_dropped_at_the_limit() {
        let tokens = AddressTokens::default();
        for n in 0..=ADDRESS_TOKEN_SERVERS {
            tokens.put(&n.to_string(), b"t");
        }
        assert_eq!(tokens.take("0"), None);
        assert!(tokens.take("1").is_some());
    }
}
