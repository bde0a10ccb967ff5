//! Implementation with ring.

use ::ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ::ring::hmac;
use subtle::ConstantTimeEq;

use super::{OpenedToken, TOKEN_RANDOM_LEN};

/// Whether `a` and `b` are equal, in a time that depends only on their lengths.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Length of the synthetic nonce, in bytes.
const SYNTHETIC_LEN: usize = 16;

/// Seals tokens. ring has no AES-GCM-SIV, so the nonce is synthetic (Rogaway and Shrimpton, 2006):
/// HMAC-SHA256 over the random bytes and the content. From it, another HMAC derives an AES-256-GCM
/// key for this token only. Layout: synthetic nonce (16), encrypted content, tag (16).
pub(crate) struct TokenCipher {
    /// Key of synthetic nonces.
    synthesis: hmac::Key,
    /// Key from which the keys of tokens derive.
    derivation: hmac::Key,
}

impl TokenCipher {
    /// Difference in length between a token and its content, in bytes.
    pub(crate) const OVERHEAD: usize = SYNTHETIC_LEN + 16;

    /// The cipher whose keys derive from `secret`.
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derive = |purpose: &[u8]| {
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, purpose).as_ref())
        };
        Self {
            synthesis: derive(b"token nonce"),
            derivation: derive(b"token key"),
        }
    }

    /// Seals `plain`. If `random` repeats, it reveals at most whether two contents are equal.
    pub(crate) fn seal(&self, random: [u8; TOKEN_RANDOM_LEN], plain: &[u8]) -> Vec<u8> {
        let mut synthesis = hmac::Context::with_key(&self.synthesis);
        synthesis.update(&random);
        synthesis.update(plain);
        let code = synthesis.sign();
        let synthetic = &code.as_ref()[..SYNTHETIC_LEN];
        let mut token = Vec::with_capacity(plain.len() + Self::OVERHEAD);
        token.extend_from_slice(synthetic);
        token.extend_from_slice(plain);
        let tag = self
            .key(synthetic)
            .seal_in_place_separate_tag(nonce(), Aad::empty(), &mut token[SYNTHETIC_LEN..])
            .expect("a token is far below the limit of the AEAD");
        token.extend_from_slice(tag.as_ref());
        token
    }

    /// Opens `token` in place; `None` if it was altered or not sealed with this key.
    pub(crate) fn open<'a>(&self, token: &'a mut [u8]) -> Option<OpenedToken<'a>> {
        let (&mut synthetic, sealed) = token.split_first_chunk_mut::<SYNTHETIC_LEN>()?;
        let plain = self
            .key(&synthetic)
            .open_in_place(nonce(), Aad::empty(), sealed)
            .ok()?;
        let mut id = [0; 8];
        id.copy_from_slice(&synthetic[..8]);
        Some(OpenedToken {
            id: u64::from_be_bytes(id),
            plain,
        })
    }

    fn key(&self, synthetic: &[u8]) -> LessSafeKey {
        let key = hmac::sign(&self.derivation, synthetic);
        let key =
            UnboundKey::new(&AES_256_GCM, key.as_ref()).expect("the key has the right length");
        LessSafeKey::new(key)
    }
}

/// The nonce can be constant because a token's key seals one content only.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: [u8; TOKEN_RANDOM_LEN] = [7; TOKEN_RANDOM_LEN];

    #[test]
    fn sealed_tokens_open_with_the_same_key_only() {
        let cipher = TokenCipher::new(&[1; 32]);
        let mut token = cipher.seal(RANDOM, b"content");
        assert_eq!(token.len(), b"content".len() + TokenCipher::OVERHEAD);
        let other = TokenCipher::new(&[2; 32]);
        assert_eq!(other.open(&mut token.clone()), None);
        assert_eq!(cipher.open(&mut token).unwrap().plain, b"content");
    }

    #[test]
    fn every_altered_byte_is_noticed() {
        let cipher = TokenCipher::new(&[1; 32]);
        let token = cipher.seal(RANDOM, b"content");
        for at in 0..token.len() {
            let mut altered = token.clone();
            altered[at] ^= 1;
            assert_eq!(cipher.open(&mut altered), None, "byte {at}");
        }
        for len in 0..token.len() {
            assert_eq!(cipher.open(&mut token[..len].to_vec()), None, "{len} bytes");
        }
    }

    #[test]
    fn comparison_covers_every_byte_and_the_length() {
        assert!(equal(b"equal", b"equal"));
        assert!(!equal(b"equal", b"Equal"));
        assert!(!equal(b"equal", b"equaL"));
        assert!(!equal(b"equal", b"equa"));
    }

    /// Under plain AES-GCM, equal nonces would reveal the difference of the contents.
    #[test]
    fn contents_with_equal_random_bytes_share_no_key_stream() {
        let cipher = TokenCipher::new(&[1; 32]);
        let one = cipher.seal(RANDOM, &[0; 32]);
        let other = cipher.seal(RANDOM, &[1; 32]);
        assert_ne!(one[..SYNTHETIC_LEN], other[..SYNTHETIC_LEN]);
        let equal_bytes = one[SYNTHETIC_LEN..][..32]
            .iter()
            .zip(&other[SYNTHETIC_LEN..][..32])
            .filter(|(one, other)| **one ^ **other == 1)
            .count();
        assert!(
            equal_bytes < 8,
            "{equal_bytes} bytes differ as their contents do"
        );
        assert_eq!(one, cipher.seal(RANDOM, &[0; 32]));
    }
}
