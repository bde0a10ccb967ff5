//! Stateless reset tokens (RFC 9000, section 10.3).

use marline_wire::ConnectionId;

use super::provider::{HmacKey, equal};

/// Length of a stateless reset token, in bytes.
pub const RESET_TOKEN_LEN: usize = 16;

/// The static key from which an endpoint derives the reset token of each of its connection IDs (RFC
/// 9000, section 10.3.2). Endpoints that share an address must share it, and keep it across restarts.
pub struct ResetKey(HmacKey);

impl ResetKey {
    /// The key made of `secret`.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(HmacKey::new(secret))
    }

    /// The token of connection ID `id`.
    pub fn token(&self, id: &ConnectionId) -> [u8; RESET_TOKEN_LEN] {
        let mut token = [0; RESET_TOKEN_LEN];
        token.copy_from_slice(&self.0.sign(id)[..RESET_TOKEN_LEN]);
        token
    }

    /// Whether two tokens are equal, in constant time, so that its timing reveals no prefix (RFC
    /// 9000, section 10.3.1).
    pub fn matches(a: &[u8; RESET_TOKEN_LEN], b: &[u8; RESET_TOKEN_LEN]) -> bool {
        equal(a, b)
    }
}

impl std::fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResetKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_tokens_depend_on_key_and_connection_id() {
        let key = ResetKey::new(&[1; 32]);
        let id = ConnectionId::new(&[1, 2, 3]).unwrap();
        let token = key.token(&id);
        assert!(ResetKey::matches(
            &token,
            &ResetKey::new(&[1; 32]).token(&id)
        ));
        assert!(!ResetKey::matches(
            &token,
            &ResetKey::new(&[2; 32]).token(&id)
        ));
        assert!(!ResetKey::matches(&token, &key.token(&ConnectionId::EMPTY)));
    }
}
