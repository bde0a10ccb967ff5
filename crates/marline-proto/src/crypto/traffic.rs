//! Packet keys from TLS secrets, for a version other than the one with which TLS was created.
//!
//! rustls takes the version when a connection is created, but a client learns the negotiated version only from
//! the server's first packet (RFC 9369, section 4.1). The TLS secrets do not depend on the version; only the
//! labels of the packet keys do. The only public function of rustls that derives keys from a secret is
//! [`Keys::initial`]. It gets an HKDF here that returns the given secrets in place of those of Initial packets.

use std::sync::LazyLock;

use marline_wire::{Side, Version};
use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::quic::{Keys, PacketKeySet, Secrets};
use rustls::{CipherSuite, SupportedCipherSuite, Tls13CipherSuite};

use super::keys::{rustls_side, rustls_version};
use super::provider::cipher_suite;

/// A secret of TLS for each direction.
#[derive(Clone)]
pub(crate) struct SecretPair {
    /// Protects packets of the client.
    pub(crate) client: OkmBlock,
    /// Protects packets of the server.
    pub(crate) server: OkmBlock,
}

/// Secrets with the parameters needed to derive packet keys.
pub(crate) struct TrafficSecrets {
    suite: &'static DerivingSuite,
    version: Version,
    side: Side,
    secrets: SecretPair,
}

impl TrafficSecrets {
    /// Whether keys can be derived from the secrets of `cipher`.
    pub(crate) fn supports(cipher: CipherSuite) -> bool {
        suite_of(cipher).is_some()
    }

    /// `None` if `cipher` is not a QUIC cipher suite of the library.
    pub(crate) fn new(
        cipher: CipherSuite,
        version: Version,
        side: Side,
        secrets: SecretPair,
    ) -> Option<Self> {
        Some(Self {
            suite: suite_of(cipher)?,
            version,
            side,
            secrets,
        })
    }

    /// The keys of the present secrets.
    pub(crate) fn keys(&self) -> Keys {
        let SecretPair { client, server } = &self.secrets;
        let both = [client.as_ref(), server.as_ref()].concat();
        let suite = &self.suite.adapted;
        let quic = suite.quic.expect("suites without QUIC are not in the list");
        let version = rustls_version(self.version);
        Keys::initial(version, suite, quic, &both, rustls_side(self.side))
    }

    /// Advances to the secrets of the next key update (RFC 9001, section 6.1).
    pub(crate) fn update(&mut self) {
        let label: &[u8] = match self.version {
            Version::V1 => b"quic ku",
            Version::V2 => b"quicv2 ku",
        };
        for secret in [&mut self.secrets.client, &mut self.secrets.server] {
            let expander = self.suite.hkdf.expander_for_okm(secret);
            *secret = expand_label(&*expander, label);
        }
    }
}

/// HKDF-Expand-Label of RFC 8446, section 7.1, with an empty context, to the length of the hash.
fn expand_label(expander: &dyn HkdfExpander, label: &[u8]) -> OkmBlock {
    let Label { len, label_len } = Label::new(expander.hash_len(), label);
    expander.expand_block(&[&len, &label_len, Label::PREFIX, label, &[0]])
}

/// As [`expand_label`], to the length of `output`.
pub(super) fn expand_label_into(
    expander: &dyn HkdfExpander,
    label: &[u8],
    output: &mut [u8],
) -> Result<(), OutputLengthError> {
    let Label { len, label_len } = Label::new(output.len(), label);
    expander.expand_slice(&[&len, &label_len, Label::PREFIX, label, &[0]], output)
}

/// The lengths in an HkdfLabel.
struct Label {
    len: [u8; 2],
    label_len: [u8; 1],
}

impl Label {
    const PREFIX: &[u8] = b"tls13 ";

    fn new(output: usize, label: &[u8]) -> Self {
        Self {
            len: (output as u16).to_be_bytes(),
            label_len: [(Self::PREFIX.len() + label.len()) as u8],
        }
    }
}

/// The HKDF of `cipher`, if it is a QUIC cipher suite of the library.
pub(super) fn hkdf(cipher: CipherSuite) -> Option<&'static dyn Hkdf> {
    Some(suite_of(cipher)?.hkdf)
}

/// Length of the secrets of `cipher`, in bytes, if it is a QUIC cipher suite of the library.
pub(super) fn hash_len(cipher: CipherSuite) -> Option<usize> {
    let suite = &suite_of(cipher)?.adapted;
    Some(suite.common.hash_provider.output_len())
}

/// Source of later 1-RTT keys.
pub(crate) enum UpdateSecrets {
    /// TLS was created with the version of the connection.
    Tls(Secrets),
    /// TLS was created with another version.
    Derived(TrafficSecrets),
}

impl UpdateSecrets {
    /// The keys of the next key update.
    pub(crate) fn next_packet_keys(&mut self) -> PacketKeySet {
        match self {
            Self::Tls(secrets) => secrets.next_packet_keys(),
            Self::Derived(secrets) => {
                let Keys { local, remote } = secrets.keys();
                secrets.update();
                PacketKeySet {
                    local: local.packet,
                    remote: remote.packet,
                }
            }
        }
    }
}

impl From<Secrets> for UpdateSecrets {
    fn from(secrets: Secrets) -> Self {
        Self::Tls(secrets)
    }
}

/// A cipher suite of the library, with an HKDF that returns given secrets.
struct DerivingSuite {
    hkdf: &'static dyn Hkdf,
    adapted: Tls13CipherSuite,
}

static SUITES: LazyLock<Vec<DerivingSuite>> = LazyLock::new(|| {
    let suites = [
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    suites.into_iter().filter_map(DerivingSuite::of).collect()
});

fn suite_of(cipher: CipherSuite) -> Option<&'static DerivingSuite> {
    SUITES
        .iter()
        .find(|suite| suite.adapted.common.suite == cipher)
}

impl DerivingSuite {
    fn of(suite: SupportedCipherSuite) -> Option<Self> {
        let suite = suite.tls13().filter(|suite| suite.quic.is_some())?;
        let common = CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        };
        Some(Self {
            hkdf: suite.hkdf_provider,
            adapted: Tls13CipherSuite {
                common,
                // Leaked once per suite, for the life of the process.
                hkdf_provider: Box::leak(Box::new(GivenSecrets(suite.hkdf_provider))),
                aead_alg: suite.aead_alg,
                quic: suite.quic,
            },
        })
    }
}

/// An HKDF that "extracts" its two input secrets, one after the other.
struct GivenSecrets(&'static dyn Hkdf);

impl Hkdf for GivenSecrets {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.0.extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, _: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        let (client, server) = secret.split_at(secret.len() / 2);
        Box::new(SecretPair {
            client: OkmBlock::new(client),
            server: OkmBlock::new(server),
        })
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.0.expander_for_okm(okm)
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        self.0.hmac_sign(key, message)
    }
}

impl SecretPair {
    /// The secret for a label of Initial secrets (RFC 9001, section 5.2).
    fn labelled(&self, info: &[&[u8]]) -> &OkmBlock {
        let info = info.concat();
        match info.windows(9).any(|label| label == b"server in") {
            true => &self.server,
            false => &self.client,
        }
    }
}

impl HkdfExpander for SecretPair {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        let secret = self.labelled(info).as_ref();
        if output.len() != secret.len() {
            return Err(OutputLengthError);
        }
        output.copy_from_slice(secret);
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        self.labelled(info).clone()
    }

    fn hash_len(&self) -> usize {
        self.client.as_ref().len()
    }
}

#[cfg(test)]
mod tests;
