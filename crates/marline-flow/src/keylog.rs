//! Key logs: secrets of TLS connections, as written by NSS and most libraries (RFC 9850).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use ahash::RandomState;
use marline_wire::Side;

use crate::limits::MAX_SECRETS;
use crate::lines::next_line;

/// Handshake secrets of both ends, by the random of the ClientHello.
#[derive(Debug, Default)]
pub struct KeyLog {
    /// Hashed with a key, since the randoms of captures are not trusted.
    secrets: HashMap<[u8; 32], Secrets, RandomState>,
}

/// The known secrets of a connection.
#[derive(Debug, Default)]
struct Secrets {
    client: Option<Secret>,
    server: Option<Secret>,
}

/// Both handshake traffic secrets of a connection (RFC 8446, section 7.1).
#[derive(Clone, Copy)]
pub(crate) struct HandshakeSecrets<'a> {
    /// The keys of the client's messages.
    pub(crate) client: &'a [u8],
    /// The keys of the server's messages.
    pub(crate) server: &'a [u8],
}

/// A secret of the length of SHA-256 or SHA-384.
struct Secret {
    bytes: [u8; 48],
    len: u8,
}

impl Secret {
    fn new(hex: &str) -> Option<Self> {
        let mut bytes = [0; 48];
        let len = decode(hex, &mut bytes)?;
        matches!(len, 32 | 48).then_some(Self {
            bytes,
            len: len as u8,
        })
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The content of a line of a key log.
enum Line {
    Secret(HandshakeSecret),
    /// A comment, an empty line, or a secret of another kind, such as one of application data.
    Other,
}

struct HandshakeSecret {
    /// The random of the ClientHello.
    random: [u8; 32],
    /// The sender of the messages that it protects.
    sender: Side,
    secret: Secret,
}

impl Line {
    /// `None` if it is not a line of a key log.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Some(Self::Other);
        }
        let mut words = text.split_ascii_whitespace();
        let (label, random_hex, secret) = (words.next()?, words.next()?, words.next()?);
        let sender = match label {
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Side::Client,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Side::Server,
            _ => return (is_label(label) && is_hex(random_hex)).then_some(Self::Other),
        };
        let mut random = [0; 32];
        if decode(random_hex, &mut random)? != random.len() {
            return None;
        }
        let secret = Secret::new(secret)?;
        Some(Self::Secret(HandshakeSecret {
            random,
            sender,
            secret,
        }))
    }
}

/// The reason why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is not a line of a key log.
    Malformed,
    /// The limit of connections with secrets is reached.
    TooMany,
}

/// A key log cannot be used; the message names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyLogError {
    /// It cannot be read.
    #[error("{name}: {error}")]
    Io {
        /// Its name.
        name: String,
        /// The cause.
        error: io::Error,
    },
    /// A line is not one of a key log.
    #[error("{name}:{line}: is not a key log line: a label, a client random and a secret")]
    Line {
        /// Its name.
        name: String,
        /// The number of the line.
        line: usize,
    },
    /// It exceeds the limit of connections.
    #[error("{name}: has the secrets of more than {MAX_SECRETS} connections")]
    TooMany {
        /// Its name.
        name: String,
    },
}

impl KeyLog {
    /// Reads a key log.
    ///
    /// # Errors
    ///
    /// [`KeyLogError`] if it cannot be read, or is not a key log.
    pub fn read(path: &Path) -> Result<Self, KeyLogError> {
        let mut log = Self::default();
        log.add(path)?;
        Ok(log)
    }

    /// Reads one more key log.
    ///
    /// # Errors
    ///
    /// [`KeyLogError`] if it cannot be read, or is not a key log.
    pub fn add(&mut self, path: &Path) -> Result<(), KeyLogError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => self.add_from(BufReader::new(file), &name),
            Err(error) => Err(KeyLogError::Io { name, error }),
        }
    }

    /// The same from a source that errors call `name`.
    ///
    /// # Errors
    ///
    /// [`KeyLogError`] if it cannot be read, or is not a key log.
    pub fn add_from(&mut self, mut reader: impl BufRead, name: &str) -> Result<(), KeyLogError> {
        let name = || name.to_owned();
        let io = |error| KeyLogError::Io {
            name: name(),
            error,
        };
        let mut text = Vec::new();
        for line in 1.. {
            if !next_line(&mut reader, &mut text).map_err(io)? {
                break;
            }
            self.add_line(&text).map_err(|refused| match refused {
                Refused::Malformed => KeyLogError::Line { name: name(), line },
                Refused::TooMany => KeyLogError::TooMany { name: name() },
            })?;
        }
        Ok(())
    }

    /// Takes a line. Of two secrets of a connection the first counts: one given before a capture is more reliable than one
    /// in it.
    pub(crate) fn add_line(&mut self, line: &[u8]) -> Result<(), Refused> {
        let text = String::from_utf8_lossy(line);
        let line = Line::parse(&text).ok_or(Refused::Malformed)?;
        let Line::Secret(line) = line else {
            return Ok(());
        };
        let is_full = self.secrets.len() >= MAX_SECRETS;
        let secrets = match self.secrets.entry(line.random) {
            Entry::Vacant(_) if is_full => return Err(Refused::TooMany),
            entry => entry.or_default(),
        };
        match line.sender {
            Side::Client => &mut secrets.client,
            Side::Server => &mut secrets.server,
        }
        .get_or_insert(line.secret);
        Ok(())
    }

    /// The handshake secrets of both ends, if both are known.
    pub(crate) fn handshake(&self, random: &[u8; 32]) -> Option<HandshakeSecrets<'_>> {
        let secrets = self.secrets.get(random)?;
        Some(HandshakeSecrets {
            client: secrets.client.as_ref()?.get(),
            server: secrets.server.as_ref()?.get(),
        })
    }

    /// The number of connections with secrets.
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }
}

/// Whether it may be a label that a newer or older writer uses.
fn is_label(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Writes the bytes that `hex` denotes and returns their number. `None` if it is malformed or too long.
fn decode(hex: &str, bytes: &mut [u8]) -> Option<usize> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.len() > bytes.len() {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(pairs.len())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{KeyLog, KeyLogError};

    const RANDOM: &str = "0101010101010101010101010101010101010101010101010101010101010101";

    fn read(text: &str) -> Result<KeyLog, KeyLogError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys.log");
        fs::write(&path, text).unwrap();
        KeyLog::read(&path)
    }

    #[test]
    fn handshake_secrets_are_found_by_the_client_random() {
        let secret = "ab".repeat(48);
        let other = "cd".repeat(48);
        let text = format!(
            "# comment\n\nCLIENT_RANDOM {RANDOM} {secret}\n\
             SERVER_HANDSHAKE_TRAFFIC_SECRET {RANDOM} {secret}\r\nEXPORTER_SECRET {RANDOM} 00\n"
        );
        let mut log = read(&text).unwrap();
        assert!(
            log.handshake(&[1; 32]).is_none(),
            "the client's is not known"
        );
        let client = format!("CLIENT_HANDSHAKE_TRAFFIC_SECRET {RANDOM} {other}\n");
        log.add_from(client.as_bytes(), "keys.log").unwrap();
        let secrets = log.handshake(&[1; 32]).unwrap();
        assert_eq!(secrets.server, [0xab; 48]);
        assert_eq!(secrets.client, [0xcd; 48]);
        assert!(log.handshake(&[2; 32]).is_none());
        assert_eq!(log.len(), 1);
    }

    #[test]
    fn the_first_secret_of_a_connection_counts() {
        let line = |byte: &str| {
            let secret = byte.repeat(32);
            ["CLIENT", "SERVER"]
                .map(|end| format!("{end}_HANDSHAKE_TRAFFIC_SECRET {RANDOM} {secret}\n"))
                .concat()
        };
        let log = read(&(line("ab") + &line("00"))).unwrap();
        let secrets = log.handshake(&[1; 32]).unwrap();
        assert_eq!([secrets.client, secrets.server], [[0xab; 32]; 2]);
    }

    #[test]
    fn a_line_that_is_none_of_a_key_log_is_named() {
        for text in [
            "SERVER_HANDSHAKE_TRAFFIC_SECRET 00 00".to_owned(),
            format!("SERVER_HANDSHAKE_TRAFFIC_SECRET {RANDOM} 0g"),
            "<html> is not a key".to_owned(),
            "not a key log".to_owned(),
            "\u{1}\u{2}".to_owned(),
        ] {
            let error = read(&format!("# a comment\n{text}\n")).unwrap_err();
            assert!(error.to_string().contains("keys.log:2: "), "{error}");
        }
    }
}
