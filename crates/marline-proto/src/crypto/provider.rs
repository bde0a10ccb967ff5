//! The cryptographic library. Other modules do not refer to it.
//!
//! The cargo features `aws-lc-rs`, which is on by default, and `ring` select it; with both, AWS-LC is
//! used. rustls seals packets with the same library. Features that both have are used from here; the
//! others are in one file for each: [`TokenCipher`] and the comparison in constant time.

#[cfg(feature = "aws-lc-rs")]
mod aws_lc_rs;
// Its tests also run where AWS-LC is the one in use.
#[cfg(all(feature = "ring", any(test, not(feature = "aws-lc-rs"))))]
mod ring;

#[cfg(feature = "aws-lc-rs")]
mod library {
    pub(super) use ::aws_lc_rs::{aead, digest, hmac};
    pub(crate) use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider};

    pub(crate) use super::aws_lc_rs::{TokenCipher, equal};
}

#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
mod library {
    pub(super) use ::ring::{aead, digest, hmac};
    pub(crate) use rustls::crypto::ring::{cipher_suite, default_provider};

    pub(crate) use super::ring::{TokenCipher, equal};
}

use library::{aead, digest, hmac};
use rustls::CipherSuite;

pub(crate) use library::{TokenCipher, cipher_suite, default_provider, equal};

/// Length of the random bytes in a sealed token.
pub(crate) const TOKEN_RANDOM_LEN: usize = 12;

/// The content of a token sealed by a [`TokenCipher`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenedToken<'a> {
    /// Differs between tokens sealed with different random bytes or content.
    pub(crate) id: u64,
    /// The decrypted content.
    pub(crate) plain: &'a [u8],
}

/// Length of the nonce of a TLS 1.3 record, in bytes, for every cipher suite of the library.
pub(crate) const RECORD_IV_LEN: usize = aead::NONCE_LEN;

/// The AEAD of a TLS 1.3 cipher suite with a key for opening.
pub(crate) struct RecordCipher(aead::LessSafeKey);

impl RecordCipher {
    /// Key length of `suite`, in bytes; `None` if the library does not support it.
    pub(crate) fn key_len(suite: CipherSuite) -> Option<usize> {
        Some(record_aead(suite)?.key_len())
    }

    /// `None` if the library does not support `suite`, or `key` has the wrong length.
    pub(crate) fn new(suite: CipherSuite, key: &[u8]) -> Option<Self> {
        let key = aead::UnboundKey::new(record_aead(suite)?, key).ok()?;
        Some(Self(aead::LessSafeKey::new(key)))
    }

    /// Opens `sealed`, which ends with its tag, in place. `None` if it is not authentic.
    pub(crate) fn open<'a>(
        &self,
        nonce: [u8; RECORD_IV_LEN],
        authenticated: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        let authenticated = aead::Aad::from(authenticated);
        let plain = self.0.open_in_place(nonce, authenticated, sealed).ok()?;
        Some(plain)
    }
}

fn record_aead(suite: CipherSuite) -> Option<&'static aead::Algorithm> {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(&aead::AES_128_GCM),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(&aead::AES_256_GCM),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(&aead::CHACHA20_POLY1305),
        _ => None,
    }
}

/// A key of HMAC with SHA-256 (RFC 2104).
pub(crate) struct HmacKey(hmac::Key);

impl HmacKey {
    /// The key made of `secret`.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The authentication code of `message`.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 32] {
        let mut code = [0; 32];
        code.copy_from_slice(hmac::sign(&self.0, message).as_ref());
        code
    }
}

/// HMAC with SHA-256 (RFC 2104) of `message` under `key`, from the library selected by the cargo feature.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    HmacKey::new(key).sign(message)
}

/// Incremental SHA-256 (FIPS 180-4), from the library selected by the cargo feature.
#[derive(Clone)]
pub struct Sha256(digest::Context);

impl Sha256 {
    /// The hash of the empty message.
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> [u8; 32] {
        let mut hash = Self::new();
        hash.update(bytes);
        hash.finish()
    }

    /// Appends `bytes` to the message.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all bytes.
    pub fn finish(self) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(self.0.finish().as_ref());
        hash
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sha256")
    }
}

/// An AES-128-GCM key that authenticates without encrypting, always with one nonce.
pub(crate) struct FixedNonceTag {
    key: aead::LessSafeKey,
    nonce: [u8; aead::NONCE_LEN],
}

impl FixedNonceTag {
    pub(crate) fn new(key: &[u8; 16], nonce: [u8; aead::NONCE_LEN]) -> Self {
        let key =
            aead::UnboundKey::new(&aead::AES_128_GCM, key).expect("the key has the right length");
        Self {
            key: aead::LessSafeKey::new(key),
            nonce,
        }
    }

    /// The tag of `message` with an empty plaintext.
    pub(crate) fn tag(&self, message: &[u8]) -> [u8; 16] {
        let nonce = aead::Nonce::assume_unique_for_key(self.nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, aead::Aad::from(message), &mut [])
            .expect("a datagram is far below the limit of AES-GCM");
        let mut out = [0; 16];
        out.copy_from_slice(tag.as_ref());
        out
    }
}

#[cfg(test)]
mod tests;
