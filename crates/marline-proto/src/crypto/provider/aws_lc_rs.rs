//! Implementation with AWS-LC (aws-lc-rs).

use ::aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ::aws_lc_rs::constant_time::verify_slices_are_equal;

use super::{OpenedToken, TOKEN_RANDOM_LEN};

/// Whether `a` and `b` are equal, in a time that depends only on their lengths.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    verify_slices_are_equal(a, b).is_ok()
}

/// Seals tokens with AES-256-GCM-SIV (RFC 8452). Layout: nonce of random bytes (12), encrypted
/// content, tag (16).
pub(crate) struct TokenCipher(LessSafeKey);

impl TokenCipher {
    /// Difference in length between a token and its content, in bytes.
    pub(crate) const OVERHEAD: usize = NONCE_LEN + 16;

    /// The cipher with the key `secret`.
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM_SIV, secret).expect("the key has the right length");
        Self(LessSafeKey::new(key))
    }

    /// Seals `plain`. If `random` repeats, it reveals at most whether two contents are equal.
    pub(crate) fn seal(&self, random: [u8; TOKEN_RANDOM_LEN], plain: &[u8]) -> Vec<u8> {
        let mut token = Vec::with_capacity(plain.len() + Self::OVERHEAD);
        token.extend_from_slice(&random);
        token.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(random);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut token[NONCE_LEN..])
            .expect("a token is far below the limit of the AEAD");
        token.extend_from_slice(tag.as_ref());
        token
    }

    /// Opens `token` in place; `None` if it was altered or not sealed with this key.
    pub(crate) fn open<'a>(&self, token: &'a mut [u8]) -> Option<OpenedToken<'a>> {
        let (&mut random, sealed) = token.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(random);
        let plain = self.0.open_in_place(nonce, Aad::empty(), sealed).ok()?;
        let mut id = [0; 8];
        id.copy_from_slice(&random[..8]);
        Some(OpenedToken {
            id: u64::from_be_bytes(id),
            plain,
        })
    }
}
