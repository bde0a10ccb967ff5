//! Kinds of objects in DER, as far as messages name them.

use std::fmt;

use time::{Date, Month, OffsetDateTime, Time};
use yasna::models::ObjectIdentifier;
use yasna::parse_der;

/// Tags of DER (X.690).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The tag `[0]` of a structure.
const FIRST_OPTION: u8 = 0xa0;

/// The object identifier of signed data in PKCS#7, as in a file of certificates.
const SIGNED_DATA: [u64; 7] = [1, 2, 840, 113_549, 1, 7, 2];

/// The kind of an object.
#[derive(Debug)]
pub(super) enum Object {
    Certificate(Certificate),
    /// A request for a certificate (RFC 2986).
    Request,
    /// A list of revoked certificates.
    Revocations,
    PrivateKey(KeyKind),
    /// A private key that is encrypted (RFC 5958).
    EncryptedKey,
    PublicKey,
    /// A key with its certificates (RFC 7292).
    Pkcs12,
    /// Certificates (RFC 2315).
    Pkcs7,
}

/// A certificate (RFC 5280).
#[derive(Debug)]
pub(super) struct Certificate {
    /// Whether it may have extensions, and so names of a server.
    pub(super) has_extensions: bool,
    /// The public key with its algorithm.
    pub(super) public_key: Vec<u8>,
    /// The first and the last moment of its validity, as far as they can be read.
    pub(super) not_before: Option<OffsetDateTime>,
    pub(super) not_after: Option<OffsetDateTime>,
}

/// The algorithm of a key, and the parameter that distinguishes its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA, with the size of the modulus.
    Rsa {
        /// Its bits.
        bits: usize,
    },
    /// An elliptic curve.
    Curve {
        /// Its name, or its object identifier.
        name: String,
    },
    /// An elliptic curve that the key describes instead of naming it.
    ExplicitCurve,
    /// Another algorithm.
    Other {
        /// Its name, or its object identifier.
        name: String,
    },
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa { bits } => write!(f, "RSA with {bits} bits"),
            Self::Curve { name } => write!(f, "the elliptic curve {name}"),
            Self::ExplicitCurve => f.write_str("an elliptic curve with explicit parameters"),
            Self::Other { name } => f.write_str(name),
        }
    }
}

/// The kind of `der`, if it is one of these.
pub(super) fn identify(der: &[u8]) -> Option<Object> {
    let parts = sequence(der)?;
    let tags = tags(&parts);
    match *tags.as_slice() {
        [SEQUENCE, SEQUENCE, BIT_STRING] => signed(&parts[0]),
        [SEQUENCE, OCTET_STRING] => Some(Object::EncryptedKey),
        [SEQUENCE, BIT_STRING] => Some(Object::PublicKey),
        [INTEGER, SEQUENCE, OCTET_STRING, ..] => {
            Some(Object::PrivateKey(of_algorithm(&parts[1], &parts[2])?))
        }
        [INTEGER, SEQUENCE] | [INTEGER, SEQUENCE, SEQUENCE] => Some(Object::Pkcs12),
        [INTEGER, OCTET_STRING, ..] => {
            let parameters = parts.get(2).filter(|part| part[0] == FIRST_OPTION);
            let parameters = parameters.and_then(|part| content(part));
            let curve = parameters.map_or(KeyKind::ExplicitCurve, |name| curve(&name));
            Some(Object::PrivateKey(curve))
        }
        [INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, INTEGER] => {
            Some(Object::PrivateKey(other("DSA")))
        }
        [INTEGER, INTEGER, INTEGER, INTEGER, ..] => Some(Object::PrivateKey(rsa(&parts)?)),
        [OBJECT_IDENTIFIER, FIRST_OPTION] if identifier(&parts[0])? == oid(&SIGNED_DATA) => {
            Some(Object::Pkcs7)
        }
        _ => None,
    }
}

/// The signed structure: a certificate, a request for one, or a list of revoked ones.
fn signed(der: &[u8]) -> Option<Object> {
    let parts = sequence(der)?;
    let tags = tags(&parts);
    match *tags.as_slice() {
        [
            FIRST_OPTION,
            INTEGER,
            SEQUENCE,
            SEQUENCE,
            SEQUENCE,
            SEQUENCE,
            SEQUENCE,
            ..,
        ] => Some(Object::Certificate(certificate(&parts[1..], true)?)),
        [
            INTEGER,
            SEQUENCE,
            SEQUENCE,
            SEQUENCE,
            SEQUENCE,
            SEQUENCE,
            ..,
        ] => Some(Object::Certificate(certificate(&parts, false)?)),
        [INTEGER, SEQUENCE, SEQUENCE] | [INTEGER, SEQUENCE, SEQUENCE, FIRST_OPTION] => {
            Some(Object::Request)
        }
        [SEQUENCE, SEQUENCE, UTC_TIME | GENERALIZED_TIME, ..]
        | [INTEGER, SEQUENCE, SEQUENCE, UTC_TIME | GENERALIZED_TIME, ..] => {
            Some(Object::Revocations)
        }
        _ => None,
    }
}

/// A certificate with these parts: serial number, algorithm, issuer, validity, subject, public key.
fn certificate(parts: &[Vec<u8>], has_extensions: bool) -> Option<Certificate> {
    let validity = sequence(parts.get(3)?)?;
    let [not_before, not_after] = validity.as_slice() else {
        return None;
    };
    Some(Certificate {
        has_extensions,
        public_key: parts.get(5)?.clone(),
        not_before: moment(not_before),
        not_after: moment(not_after),
    })
}

/// A point in time as encoded in certificates: `YYMMDDHHMMSSZ`, or with four digits of the year (RFC 5280, section
/// 4.1.2.5).
fn moment(der: &[u8]) -> Option<OffsetDateTime> {
    let text = content(der)?;
    let digits = text.strip_suffix(b"Z")?;
    let numbers = |bytes: &[u8]| -> Option<u16> {
        let text = std::str::from_utf8(bytes).ok()?;
        text.parse().ok()
    };
    let (year, rest) = match der[0] {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = numbers(year)?;
            (if year < 50 { 2000 } else { 1900 } + year, rest)
        }
        _ => {
            let (year, rest) = digits.split_at_checked(4)?;
            (numbers(year)?, rest)
        }
    };
    let pairs: Option<Vec<u8>> = rest
        .chunks(2)
        .map(|pair| numbers(pair)?.try_into().ok())
        .collect();
    let [month, day, hour, minute, second] = pairs?.try_into().ok()?;
    let month = Month::try_from(month).ok()?;
    let date = Date::from_calendar_date(year.into(), month, day).ok()?;
    let time = Time::from_hms(hour, minute, second).ok()?;
    Some(OffsetDateTime::new_utc(date, time))
}

/// The kind of a key of an algorithm with its parameters (RFC 5958).
fn of_algorithm(algorithm: &[u8], key: &[u8]) -> Option<KeyKind> {
    let parts = sequence(algorithm)?;
    let name = identifier(parts.first()?)?;
    Some(match name.to_string().as_str() {
        "1.2.840.113549.1.1.1" => rsa(&sequence(&content(key)?)?)?,
        "1.2.840.113549.1.1.10" => other("RSA-PSS"),
        "1.2.840.10045.2.1" => curve(parts.get(1)?),
        "1.2.840.10040.4.1" => other("DSA"),
        "1.2.840.113549.1.3.1" => other("Diffie-Hellman"),
        "1.3.101.110" => other("X25519"),
        "1.3.101.111" => other("X448"),
        "1.3.101.112" => other("Ed25519"),
        "1.3.101.113" => other("Ed448"),
        "2.16.840.1.101.3.4.3.17" => other("ML-DSA-44"),
        "2.16.840.1.101.3.4.3.18" => other("ML-DSA-65"),
        "2.16.840.1.101.3.4.3.19" => other("ML-DSA-87"),
        unknown => other(unknown),
    })
}

/// The curve with this identifier.
fn curve(parameters: &[u8]) -> KeyKind {
    let Some(identifier) = identifier(parameters) else {
        return KeyKind::ExplicitCurve;
    };
    let identifier = identifier.to_string();
    let name = match identifier.as_str() {
        "1.2.840.10045.3.1.1" => "P-192",
        "1.3.132.0.33" => "P-224",
        "1.2.840.10045.3.1.7" => "P-256",
        "1.3.132.0.34" => "P-384",
        "1.3.132.0.35" => "P-521",
        "1.3.132.0.10" => "secp256k1",
        "1.3.36.3.3.2.8.1.1.7" => "brainpoolP256r1",
        "1.3.36.3.3.2.8.1.1.11" => "brainpoolP384r1",
        "1.3.36.3.3.2.8.1.1.13" => "brainpoolP512r1",
        unknown => unknown,
    };
    KeyKind::Curve {
        name: name.to_owned(),
    }
}

/// The kind of a key of RSA with these numbers: version, modulus, and the rest (RFC 8017, appendix A.1.2).
fn rsa(parts: &[Vec<u8>]) -> Option<KeyKind> {
    let modulus = content(parts.get(1)?)?;
    let leading = modulus.iter().position(|byte| *byte != 0)?;
    let modulus = &modulus[leading..];
    let bits = modulus.len() * 8 - modulus[0].leading_zeros() as usize;
    Some(KeyKind::Rsa { bits })
}

fn other(name: &str) -> KeyKind {
    KeyKind::Other {
        name: name.to_owned(),
    }
}

fn oid(components: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(components)
}

fn identifier(der: &[u8]) -> Option<ObjectIdentifier> {
    parse_der(der, |reader| reader.read_oid()).ok()
}

/// The elements of a sequence, none of them empty.
fn sequence(der: &[u8]) -> Option<Vec<Vec<u8>>> {
    parse_der(der, |reader| {
        reader.collect_sequence_of(|element| element.read_der())
    })
    .ok()
}

/// The content of an element, without its tag and its length.
fn content(der: &[u8]) -> Option<Vec<u8>> {
    let element = parse_der(der, |reader| reader.read_tagged_der()).ok()?;
    Some(element.value().to_vec())
}

fn tags(elements: &[Vec<u8>]) -> Vec<u8> {
    elements
        .iter()
        .filter_map(|element| element.first().copied())
        .collect()
}
