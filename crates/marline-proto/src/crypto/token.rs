//! Address validation tokens (RFC 9000, section 8.1).
//!
//! A token holds the state that the server needs about a client, encrypted and authenticated with a key of the
//! server, so that the server stores none. Its content: kind and version (1 byte), issue time (8), the client's IP
//! address (5 or 17); in a Retry token then the port (2) and two connection IDs, in a token that states a path's
//! capacity then a [`TokenCapacity`]. A new layout takes a new kind.

mod capacity;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use marline_wire::{ConnectionId, Reader, Truncated, Version};

use super::ReplayFilter;
use super::provider::{OpenedToken, TOKEN_RANDOM_LEN, TokenCipher};
use super::rotation::RotatingCipher;
use crate::limits::{NEW_TOKEN_LIFETIME, RETRY_TOKEN_LIFETIME};
use crate::rng::SecureRng;

pub(crate) use capacity::TokenCapacity;

const RETRY: u8 = 0;
const NEW_TOKEN: u8 = 1;
/// A NEW_TOKEN token with a [`TokenCapacity`].
const NEW_TOKEN_WITH_CAPACITY: u8 = 2;

/// The same, and the [`TokenCapacity`] has the model of a rate-based controller.
const NEW_TOKEN_WITH_MODEL: u8 = 3;

/// Set in the kind of a token of version 2. Tokens are valid in the version that they were issued in (RFC 9369,
/// section 5).
const VERSION_2_BIT: u8 = 0x80;

/// The first byte of a token.
const fn kind_byte(kind: u8, version: Version) -> u8 {
    match version {
        Version::V1 => kind,
        Version::V2 => kind | VERSION_2_BIT,
    }
}

/// The key that seals a server's tokens. Servers that share an address must share it, and must be built
/// with the same cryptographic library (cargo feature `aws-lc-rs` or `ring`), whose tokens differ.
///
/// Two tokens sealed with the same random bytes reveal at most that they are equal; no counter has to be
/// kept across restarts or shared between servers.
///
/// The capacities in tokens for careful resume are claimed here, so that one connection at a time
/// resumes from each. Claims are not shared with other processes that use the same secret, and do not
/// survive a restart.
pub struct TokenKey {
    ciphers: RotatingCipher,
    claims: Mutex<ReplayFilter>,
}

impl TokenKey {
    /// The key made of `secret`.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self {
            ciphers: RotatingCipher::new(secret),
            claims: Mutex::default(),
        }
    }

    /// Seals with `secret` from now on; tokens of the previous secret are still accepted, those of earlier
    /// ones are not.
    pub fn rotate(&self, secret: &[u8; 32]) {
        self.ciphers.rotate(secret);
    }

    /// A token for a Retry packet sent to `client` at `now` (seconds since the Unix epoch), with
    /// the client's first destination connection ID `original_dcid` and the Retry's source
    /// connection ID `retry_scid`.
    pub(crate) fn retry(
        &self,
        version: Version,
        client: SocketAddr,
        original_dcid: &ConnectionId,
        retry_scid: &ConnectionId,
        now: u64,
        rng: &mut SecureRng,
    ) -> Vec<u8> {
        self.seal(rng, |buf| {
            buf.push(kind_byte(RETRY, version));
            buf.extend_from_slice(&now.to_be_bytes());
            encode_ip(client.ip(), buf);
            buf.extend_from_slice(&client.port().to_be_bytes());
            for id in [original_dcid, retry_scid] {
                buf.push(id.len() as u8);
                buf.extend_from_slice(id);
            }
        })
    }

    /// A token for a NEW_TOKEN frame to a client at `ip`, issued at `now` (seconds since the Unix epoch),
    /// with the path's capacity if given. It contains no port, which may change before the client returns.
    pub(crate) fn new_token(
        &self,
        version: Version,
        ip: IpAddr,
        now: u64,
        capacity: Option<&TokenCapacity>,
        rng: &mut SecureRng,
    ) -> Vec<u8> {
        self.seal(rng, |buf| {
            let kind = capacity.map_or(NEW_TOKEN, |capacity| match capacity.model {
                Some(_) => NEW_TOKEN_WITH_MODEL,
                None => NEW_TOKEN_WITH_CAPACITY,
            });
            buf.push(kind_byte(kind, version));
            buf.extend_from_slice(&now.to_be_bytes());
            encode_ip(ip, buf);
            if let Some(capacity) = capacity {
                capacity.encode(buf);
            }
        })
    }

    /// Claims the capacity in a token. False if it was claimed before, from this or another token
    /// of the same source.
    pub(crate) fn claim(&self, capacity: &TokenCapacity) -> bool {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.first_use(capacity.source, capacity.observed)
    }

    /// Reads the `token` of an Initial packet of `version` that came from `client` to `dcid` at `now` (seconds
    /// since the Unix epoch).
    ///
    /// # Errors
    ///
    /// [`TokenError::Retry`] requires INVALID_TOKEN (RFC 9000, section 8.1.3); after any other error
    /// the packet is treated as one without a token.
    pub(crate) fn open(
        &self,
        version: Version,
        token: &[u8],
        client: SocketAddr,
        dcid: &ConnectionId,
        now: u64,
    ) -> Result<Token, TokenError> {
        let mut buf = [0; MAX_LEN];
        let buf = buf.get_mut(..token.len()).ok_or(TokenError::Unknown)?;
        let opened = self.ciphers.open(token, buf).ok_or(TokenError::Unknown)?;
        read(&opened, version, client, dcid, now)
    }

    pub(crate) fn seal(&self, rng: &mut SecureRng, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut random = [0; TOKEN_RANDOM_LEN];
        rng.fill(&mut random);
        let mut plain = Vec::with_capacity(MAX_LEN);
        write(&mut plain);
        self.ciphers.seal(random, &plain)
    }
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey")
    }
}

/// Maximum length of this server's tokens, in bytes; longer ones are not its own.
const MAX_LEN: usize = TokenCipher::OVERHEAD + 1 + 8 + 17 + 2 + 21 + 21;

/// The content of a valid token, which proves that the client receives at its source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// From a Retry packet.
    Retry {
        /// Destination connection ID of the client's first packet, for the transport parameters.
        original_dcid: ConnectionId,
        /// Source connection ID of the Retry, for the transport parameters.
        retry_scid: ConnectionId,
    },
    /// From a NEW_TOKEN frame of an earlier connection.
    NewToken {
        /// Unique to the token, for [`ReplayFilter`].
        id: u64,
        /// Time of issue, in seconds since the Unix epoch.
        issued: u64,
        /// The capacity of the client's path, if the token contains it.
        capacity: Option<TokenCapacity>,
    },
}

/// The reason why a token is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// Altered, or not made with this key.
    Unknown,
    /// A Retry token that is invalid for this packet at this time.
    Retry(TokenFault),
    /// A NEW_TOKEN token that is invalid for this packet at this time.
    NewToken(TokenFault),
}

/// The fault of a token that this server issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// Issued too long ago, or in the future.
    Expired,
    /// Made for another address.
    Address,
    /// Made for another connection ID.
    ConnectionId,
    /// Issued in another version of QUIC.
    Version,
}

/// The first fields of every token.
struct TokenHeader {
    kind: u8,
    version: Version,
    issued: u64,
    ip: IpAddr,
}

impl TokenHeader {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        let first = reader.u8()?;
        Ok(Self {
            kind: first & !VERSION_2_BIT,
            version: match first & VERSION_2_BIT {
                0 => Version::V1,
                _ => Version::V2,
            },
            issued: u64::from_be_bytes(reader.array()?),
            ip: decode_ip(reader)?,
        })
    }
}

/// The remaining fields of a Retry token.
struct RetryContent {
    port: u16,
    original_dcid: ConnectionId,
    retry_scid: ConnectionId,
}

impl RetryContent {
    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            port: u16::from_be_bytes(reader.array().ok()?),
            original_dcid: decode_id(reader)?,
            retry_scid: decode_id(reader)?,
        })
    }
}

fn read(
    opened: &OpenedToken<'_>,
    version: Version,
    client: SocketAddr,
    dcid: &ConnectionId,
    now: u64,
) -> Result<Token, TokenError> {
    let mut reader = Reader::new(opened.plain);
    let TokenHeader {
        kind,
        version: issued_in,
        issued,
        ip,
    } = TokenHeader::decode(&mut reader).map_err(|_| TokenError::Unknown)?;
    let check = |lifetime, port| {
        if !matches!(now.checked_sub(issued), Some(age) if age <= lifetime) {
            Err(TokenFault::Expired)
        } else if ip != client.ip().to_canonical() || port != client.port() {
            Err(TokenFault::Address)
        } else if issued_in != version {
            Err(TokenFault::Version)
        } else {
            Ok(())
        }
    };
    match kind {
        RETRY => {
            let retry = RetryContent::decode(&mut reader).ok_or(TokenError::Unknown)?;
            check(RETRY_TOKEN_LIFETIME, retry.port).map_err(TokenError::Retry)?;
            if retry.retry_scid != *dcid {
                return Err(TokenError::Retry(TokenFault::ConnectionId));
            }
            Ok(Token::Retry {
                original_dcid: retry.original_dcid,
                retry_scid: retry.retry_scid,
            })
        }
        NEW_TOKEN | NEW_TOKEN_WITH_CAPACITY | NEW_TOKEN_WITH_MODEL => {
            let capacity = match kind {
                NEW_TOKEN => None,
                _ => {
                    let capacity = TokenCapacity::decode(&mut reader, kind == NEW_TOKEN_WITH_MODEL);
                    Some(capacity.map_err(|_| TokenError::Unknown)?)
                }
            };
            check(NEW_TOKEN_LIFETIME, client.port()).map_err(TokenError::NewToken)?;
            Ok(Token::NewToken {
                id: opened.id,
                issued,
                capacity,
            })
        }
        _ => Err(TokenError::Unknown),
    }
}

fn encode_ip(ip: IpAddr, buf: &mut Vec<u8>) {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            buf.push(4);
            buf.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            buf.push(6);
            buf.extend_from_slice(&ip.octets());
        }
    }
}

fn decode_ip(reader: &mut Reader<'_>) -> Result<IpAddr, Truncated> {
    Ok(match reader.u8()? {
        4 => Ipv4Addr::from(reader.array::<4>()?).into(),
        _ => Ipv6Addr::from(reader.array::<16>()?).into(),
    })
}

fn decode_id(reader: &mut Reader<'_>) -> Option<ConnectionId> {
    let len = usize::from(reader.u8().ok()?);
    ConnectionId::new(reader.take(len).ok()?)
}

#[cfg(test)]
mod tests;
