//! A token cipher with a rotating secret.

use std::sync::{PoisonError, RwLock};

use super::provider::{OpenedToken, TOKEN_RANDOM_LEN, TokenCipher};

/// The present cipher, which seals, and the previous one, which still opens.
pub(crate) struct RotatingCipher(RwLock<Ciphers>);

struct Ciphers {
    present: TokenCipher,
    previous: Option<TokenCipher>,
}

impl RotatingCipher {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self(RwLock::new(Ciphers {
            present: TokenCipher::new(secret),
            previous: None,
        }))
    }

    /// Makes `secret` the present one, and the present one the previous.
    pub(crate) fn rotate(&self, secret: &[u8; 32]) {
        let present = TokenCipher::new(secret);
        let mut ciphers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut ciphers.present, present);
        ciphers.previous = Some(previous);
    }

    /// Seals `plain` with the present cipher, as [`TokenCipher::seal`].
    pub(crate) fn seal(&self, random: [u8; TOKEN_RANDOM_LEN], plain: &[u8]) -> Vec<u8> {
        let ciphers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ciphers.present.seal(random, plain)
    }

    /// Opens `sealed` into `buf` of the same length; `None` if neither cipher sealed it.
    pub(crate) fn open<'a>(&self, sealed: &[u8], buf: &'a mut [u8]) -> Option<OpenedToken<'a>> {
        let ciphers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Ciphers { present, previous } = &*ciphers;
        buf.copy_from_slice(sealed);
        // The result is checked before it is borrowed: a returned borrow would last to the end of the function.
        let cipher = match present.open(buf) {
            Some(_) => present,
            None => previous.as_ref()?,
        };
        buf.copy_from_slice(sealed);
        cipher.open(buf)
    }
}
