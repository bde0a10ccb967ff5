//! A cipher of tokens whose secret changes.

use std::sync::{PoisonError, RwLock};

use super::provider::{OpenedToken, TOKEN_RANDOM_LEN, TokenCipher};

/// The present cipher, which seals, and the one before, which still opens.
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

    /// Makes `secret` the present one.
    pub(crate) fn rotate(&self, secret: &[u8; 32]) {
        let present = TokenCipher::new(secret);
        let mut ciphers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut ciphers.present, present);
        ciphers.previous = Some(previous);
    }

    /// See [`TokenCipher::seal`].
    pub(crate) fn seal(&self, random: [u8; TOKEN_RANDOM_LEN], plain: &[u8]) -> Vec<u8> {
        let ciphers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ciphers.present.seal(random, plain)
    }

    /// Opens `sealed` into `buf`, which is as long; `None` if neither cipher sealed it.
    pub(crate) fn open<'a>(&self, sealed: &[u8], buf: &'a mut [u8]) -> Option<OpenedToken<'a>> {
        let ciphers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Ciphers { present, previous } = &*ciphers;
        buf.copy_from_slice(sealed);
        // Whether it opens is found out first: a borrow that is returned would last to the end of the function.
        let cipher = match present.open(buf) {
            Some(_) => present,
            None => previous.as_ref()?,
        };
        buf.copy_from_slice(sealed);
        cipher.open(buf)
    }
}
