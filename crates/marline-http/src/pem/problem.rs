//! The faults of files of certificates and keys.

use std::ops::RangeInclusive;

use rustls::pki_types::pem;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::der::{KeyKind, Object, identify};

/// The content that a file should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Certificate,
    PrivateKey,
}

/// The fault of a file of certificates or of a key, and what to do. `FILE` in its text is that file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PemProblem {
    /// The file cannot be read.
    #[error("{0}; give a PEM file")]
    Unreadable(String),
    /// The file has no content.
    #[error("it is empty; write the PEM file again")]
    Empty,
    /// The text has two bytes for each character.
    #[error(
        "it is text in UTF-16, as some programs of Windows write it; `iconv -f UTF-16 -t UTF-8 FILE > new.pem` makes it readable"
    )]
    Utf16,
    /// The line breaks are written as `\n`, as in variables and JSON.
    #[error(
        "its lines are separated by \\n as text; `printf '%b' \"$(cat FILE)\" > new.pem` makes lines of them"
    )]
    EscapedLines,
    /// There are no line breaks, or blanks in their place.
    #[error("its lines were joined to one; copy it again with its line breaks")]
    JoinedLines,
    /// Blanks stand before the lines, as in YAML.
    #[error("its lines begin with blanks; `sed 's/^[[:blank:]]*//' FILE > new.pem` removes them")]
    Indented,
    /// Text that is not PEM.
    #[error("it is not a PEM file: no line begins with -----BEGIN; give a file that has one")]
    NoPem,
    /// A certificate in binary form.
    #[error(
        "it is a certificate in DER; `openssl x509 -inform DER -in FILE -out cert.pem` makes PEM of it"
    )]
    DerCertificate,
    /// A private key in binary form.
    #[error(
        "it is a private key in DER; `openssl pkey -inform DER -in FILE -out key.pem` makes PEM of it"
    )]
    DerKey,
    /// A key with its certificates in one binary file.
    #[error(
        "it is a PKCS#12 file, of key and certificates; `openssl pkcs12 -in FILE -nokeys -out cert.pem` and \
         `openssl pkcs12 -in FILE -nocerts -noenc -out key.pem` make PEM of it"
    )]
    Pkcs12,
    /// Certificates in PKCS#7, binary or PEM.
    #[error(
        "it is a PKCS#7 file; `openssl pkcs7 -in FILE -print_certs -out cert.pem` makes PEM of its certificates, with -inform DER if it is binary"
    )]
    Pkcs7,
    /// A keystore of Java.
    #[error(
        "it is a keystore of Java; `keytool -importkeystore -srckeystore FILE -destkeystore new.p12 -deststoretype pkcs12` makes \
         PKCS#12 of it, which openssl pkcs12 reads"
    )]
    Keystore,
    /// Bytes of no known format.
    #[error("it is binary, of an unknown format; give a PEM file, which is text")]
    Binary,
    /// A certificate where a key should be.
    #[error(
        "it has a certificate and no private key; give the file of the key (are the two files swapped?)"
    )]
    CertificateForKey,
    /// A key where a certificate should be.
    #[error(
        "it has a private key and no certificate; give the file of the certificate (are the two files swapped?)"
    )]
    KeyForCertificate,
    /// A request for a certificate.
    #[error(
        "it has a request for a certificate (CSR); give the certificate that an authority makes of it, or for a test one by \
         `openssl x509 -req -copy_extensions copy -in FILE -signkey key.pem -out cert.pem`"
    )]
    Request,
    /// A list of revoked certificates.
    #[error("it has a list of revoked certificates (CRL); give the certificate")]
    Revocations,
    /// A public key.
    #[error("it has a public key only; {}", match .wanted_key { true => "give the private key that belongs to it", false => "give the certificate" })]
    PublicKey {
        /// Whether a private key should be there, rather than a certificate.
        wanted_key: bool,
    },
    /// Parameters of keys without one.
    #[error(
        "it has parameters ({label}) and no key; give the file of the key, as `openssl genpkey -paramfile FILE -out key.pem` makes one"
    )]
    Parameters {
        /// The label of the block.
        label: String,
    },
    /// A certificate with data of OpenSSL.
    #[error(
        "it has a certificate with trust settings of OpenSSL; `openssl x509 -in FILE -out cert.pem` removes these"
    )]
    TrustedCertificate,
    /// A key of OpenSSH.
    #[error(
        "it has a key of OpenSSH; `ssh-keygen -p -m PKCS8 -f COPY` converts a copy of it in place, and \
         `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem` makes another key"
    )]
    OpenSsh,
    /// A key of PGP.
    #[error("it is a PGP file; give a certificate or a key of TLS")]
    Pgp,
    /// A block that is none of these.
    #[error("it has a block {label}, and no {}; give the right file", match .wanted_key { true => "PRIVATE KEY", false => "CERTIFICATE" })]
    OtherBlock {
        /// The label of the block.
        label: String,
        /// Whether a private key should be there, rather than a certificate.
        wanted_key: bool,
    },
    /// The key is encrypted.
    #[error(
        "the private key is encrypted with a passphrase, and a server cannot ask for it; `openssl pkey -in FILE -out key.pem` writes it \
         without; keep that file readable for the server alone"
    )]
    Encrypted,
    /// A block has no end.
    #[error("the block {label} has no end: the file is cut off; copy it again")]
    CutOff {
        /// The label of the block.
        label: String,
    },
    /// A block is not base64, or a line around it is damaged.
    #[error("a block is damaged: {reason}; copy the file again")]
    Damaged {
        /// The part that is wrong.
        reason: &'static str,
    },
    /// The block of a certificate does not contain one.
    #[error(
        "certificate number {number} is damaged or cut off; copy the file again, or look at it by `openssl x509 -in FILE -text`"
    )]
    DamagedCertificate {
        /// Its number in the file, from 1.
        number: usize,
    },
    /// The block of a key does not contain one.
    #[error(
        "the private key is damaged, cut off, or has values that the cryptographic library refuses; copy the file again, or look at it by `openssl pkey -in FILE -check -noout`"
    )]
    DamagedKey,
    /// The size of an RSA key is not supported.
    #[error(
        "the RSA key has {bits} bits, and keys must have {} to {}; \
         `openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem` makes one; then request a certificate for it",
        RSA_BITS.start(), RSA_BITS.end()
    )]
    RsaSize {
        /// Its size.
        bits: usize,
    },
    /// The kind of a key is not supported.
    #[error(
        "the private key is of {kind}, which TLS does not support here; \
         `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem` makes one that every client supports; then request a certificate for it"
    )]
    Unsupported {
        /// Its kind.
        kind: KeyKind,
    },
    /// The certificate is of version 1 of X.509.
    #[error(
        "the certificate is of version 1 of X.509, and has no extensions; make one of version 3 by `openssl x509 -req \
         -copy_extensions copy ...` of a request with an extension: -addext subjectAltName=DNS:HOST for a server, \
         -addext extendedKeyUsage=clientAuth for a client"
    )]
    NoExtensions,
    /// The certificate of the key is not the first.
    #[error(
        "the certificate of the key is number {number} of the file; put it first, then that of its signer, and so on"
    )]
    WrongOrder {
        /// Its place, from 1.
        number: usize,
    },
    /// The file of the key has several, and the first is another one's.
    #[error(
        "it has {count} private keys, and the first is not that of the certificate; leave only that one in it"
    )]
    SeveralKeys {
        /// Their number.
        count: usize,
    },
    /// The key is another certificate's.
    #[error(
        "it is the key of another certificate; `openssl pkey -in KEY -pubout` and `openssl x509 -in CERT -noout -pubkey` print the \
         same for a pair"
    )]
    OtherKey,
}

/// The sizes of RSA keys that are supported, in bits.
pub(super) const RSA_BITS: RangeInclusive<usize> = 2048..=MAX_RSA_BITS;
const MAX_RSA_BITS: usize = if cfg!(feature = "aws-lc-rs") {
    8192
} else {
    4096
};

/// A certificate that is not valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// No longer.
    Expired {
        /// Its number in the chain, from 1.
        number: usize,
        /// The last moment of its validity.
        until: OffsetDateTime,
    },
    /// Not yet.
    NotYet {
        /// Its number in the chain, from 1.
        number: usize,
        /// The first moment of its validity.
        from: OffsetDateTime,
    },
}

impl std::fmt::Display for Validity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |moment: OffsetDateTime| moment.format(&Rfc3339).unwrap_or_default();
        match self {
            Self::Expired { number, until } => write!(
                f,
                "certificate number {number} expired at {}: clients refuse it; have it renewed",
                shown(*until)
            ),
            Self::NotYet { number, from } => write!(
                f,
                "certificate number {number} is valid from {} on: clients refuse it before; check the clock of this machine (`date -u`), or wait",
                shown(*from)
            ),
        }
    }
}

/// The beginning of a keystore of Java.
const KEYSTORE: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];

/// The beginning of a PKCS#12 file whose length is not announced: a sequence, and version 3 in it.
const BER_PKCS12: [u8; 5] = [0x30, 0x80, 0x02, 0x01, 0x03];

/// The fault of `content`, which does not contain the `wanted` object, or for which reading PEM
/// failed with `error`.
pub(super) fn explain(content: &[u8], wanted: Wanted, error: Option<&pem::Error>) -> PemProblem {
    if content.iter().all(u8::is_ascii_whitespace) {
        return PemProblem::Empty;
    }
    if content.starts_with(b"\xff\xfe")
        || content.starts_with(b"\xfe\xff")
        || has_wide_dashes(content)
    {
        return PemProblem::Utf16;
    }
    let blocks = Blocks::of(content);
    // Unlike the newer form of encrypted keys, the older one cannot be skipped.
    if blocks.is_encrypted && (wanted == Wanted::PrivateKey || error.is_some()) {
        return PemProblem::Encrypted;
    }
    // Before the others, which name a block by its first line.
    if blocks.are_joined {
        return match blocks.has_escaped_lines {
            true => PemProblem::EscapedLines,
            false => PemProblem::JoinedLines,
        };
    }
    match error {
        Some(pem::Error::MissingSectionEnd { .. }) => {
            let label = blocks.labels.last().cloned().unwrap_or_default();
            return PemProblem::CutOff { label };
        }
        Some(pem::Error::IllegalSectionStart { .. }) if blocks.has_escaped_lines => {
            return PemProblem::EscapedLines;
        }
        Some(pem::Error::IllegalSectionStart { .. }) => {
            let reason = "a line -----BEGIN does not end with five dashes";
            return PemProblem::Damaged { reason };
        }
        Some(pem::Error::Base64Decode(_)) => {
            let reason = "its content is not base64";
            return PemProblem::Damaged { reason };
        }
        Some(error) => return PemProblem::Unreadable(error.to_string()),
        None => {}
    }
    if blocks.labels.is_empty() {
        return without_blocks(content, &blocks, wanted);
    }
    if blocks.are_indented {
        return PemProblem::Indented;
    }
    of_labels(&blocks.labels, wanted)
}

/// A file without a line `-----BEGIN`.
fn without_blocks(content: &[u8], blocks: &Blocks, wanted: Wanted) -> PemProblem {
    if blocks.has_escaped_lines {
        return PemProblem::EscapedLines;
    }
    match identify(content) {
        Some(Object::Certificate(_)) => return PemProblem::DerCertificate,
        Some(Object::Request) => return PemProblem::Request,
        Some(Object::Revocations) => return PemProblem::Revocations,
        Some(Object::PrivateKey(_)) => return PemProblem::DerKey,
        Some(Object::EncryptedKey) => return PemProblem::Encrypted,
        Some(Object::PublicKey) => {
            let wanted_key = wanted == Wanted::PrivateKey;
            return PemProblem::PublicKey { wanted_key };
        }
        Some(Object::Pkcs12) => return PemProblem::Pkcs12,
        Some(Object::Pkcs7) => return PemProblem::Pkcs7,
        None => {}
    }
    if content.starts_with(&KEYSTORE) {
        return PemProblem::Keystore;
    }
    if content.starts_with(&BER_PKCS12) {
        return PemProblem::Pkcs12;
    }
    match content.contains(&0) || std::str::from_utf8(content).is_err() {
        true => PemProblem::Binary,
        false => PemProblem::NoPem,
    }
}

/// A file with these blocks, none of which is the wanted one.
fn of_labels(labels: &[String], wanted: Wanted) -> PemProblem {
    let wanted_key = wanted == Wanted::PrivateKey;
    let has = |name: &str| labels.iter().any(|label| label == name);
    let has_private_key = labels.iter().any(|label| label.ends_with("PRIVATE KEY"));
    // The nearest to the wanted object first.
    if has("OPENSSH PRIVATE KEY") {
        PemProblem::OpenSsh
    } else if wanted_key && has("DSA PRIVATE KEY") {
        let name = "DSA".to_owned();
        PemProblem::Unsupported {
            kind: KeyKind::Other { name },
        }
    } else if !wanted_key && (has("TRUSTED CERTIFICATE") || has("X509 CERTIFICATE")) {
        PemProblem::TrustedCertificate
    } else if !wanted_key && has_private_key {
        PemProblem::KeyForCertificate
    } else if wanted_key && (has("CERTIFICATE") || has("TRUSTED CERTIFICATE")) {
        PemProblem::CertificateForKey
    } else if has("CERTIFICATE REQUEST") || has("NEW CERTIFICATE REQUEST") {
        PemProblem::Request
    } else if has("X509 CRL") {
        PemProblem::Revocations
    } else if has("PKCS7") || has("PKCS #7 SIGNED DATA") {
        PemProblem::Pkcs7
    } else if has("PUBLIC KEY") || has("RSA PUBLIC KEY") {
        PemProblem::PublicKey { wanted_key }
    } else if labels.iter().any(|label| label.starts_with("PGP ")) {
        PemProblem::Pgp
    } else if let Some(label) = labels.iter().find(|label| label.ends_with(" PARAMETERS")) {
        PemProblem::Parameters {
            label: label.clone(),
        }
    } else {
        let label = labels.first().cloned().unwrap_or_default();
        PemProblem::OtherBlock { label, wanted_key }
    }
}

/// The blocks of a text, as far as their lines can be found.
struct Blocks {
    labels: Vec<String>,
    /// Whether one is of a key that is encrypted (RFC 5958; RFC 1421, section 4.6.1.1).
    is_encrypted: bool,
    are_indented: bool,
    /// Whether the content of one stands on its first line.
    are_joined: bool,
    /// Whether `\n` stands in the place of line breaks.
    has_escaped_lines: bool,
}

impl Blocks {
    fn of(content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content);
        let mut found = Self {
            labels: Vec::new(),
            is_encrypted: false,
            are_indented: false,
            are_joined: false,
            has_escaped_lines: text.contains("-----\\n") || text.contains("-----\\r"),
        };
        for line in text.split(['\n', '\r']) {
            let begin = line.trim();
            if begin.starts_with("Proc-Type:") && begin.contains("ENCRYPTED") {
                found.is_encrypted = true;
            }
            let label = begin.strip_prefix("-----BEGIN ");
            let Some(label) = label.and_then(|rest| rest.strip_suffix("-----")) else {
                continue;
            };
            if label.contains("-----") {
                found.are_joined = true;
                continue;
            }
            found.are_indented |= line.starts_with([' ', '\t']);
            found.is_encrypted |= label == "ENCRYPTED PRIVATE KEY";
            // No message quotes more.
            found.labels.push(label.chars().take(40).collect());
        }
        found
    }
}

/// Whether text in UTF-16 without a mark has a line `-----BEGIN`.
fn has_wide_dashes(content: &[u8]) -> bool {
    let wide = |little: bool| {
        let dash = if little { [b'-', 0] } else { [0, b'-'] };
        dash.repeat(5)
    };
    [true, false].into_iter().any(|little| {
        let dashes = wide(little);
        content.windows(dashes.len()).any(|window| window == dashes)
    })
}
