//! Address validation tokens (RFC 9000, section 8.1).
//!
//! A token is what the server wants to remember of a client, sealed so that only it can read or
//! make one: nothing is stored. Layout: nonce (12 bytes), then sealed: kind (1), issue time (8),
//! and the client's address (and for Retry its port and two connection IDs; and for a client that carries
//! what its path was seen to bear, that). Another layout is another kind.

mod carried;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use marline_wire::{ConnectionId, Reader, Truncated};

use super::ReplayFilter;
use crate::limits::{NEW_TOKEN_LIFETIME, RETRY_TOKEN_LIFETIME};

pub(crate) use carried::Carried;

const RETRY: u8 = 0;
const NEW_TOKEN: u8 = 1;
/// A NEW_TOKEN token with a [`Carried`].
const CARRYING: u8 = 2;

/// The key that seals a server's tokens. Servers that share an address share it.
///
/// Under AES-256-GCM-SIV two tokens that by chance share a nonce reveal at most that they are
/// equal; no counter has to be kept over restarts or between servers.
///
/// What clients carry for careful resume is claimed here, so that one connection at a time resumes from
/// it. Other processes with the same secret do not know of these claims, nor does a restarted one.
pub struct TokenKey {
    key: LessSafeKey,
    claims: Mutex<ReplayFilter>,
}

impl TokenKey {
    /// The key that `secret` is.
    pub fn new(secret: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM_SIV, secret).expect("the key has the right length");
        Self {
            key: LessSafeKey::new(key),
            claims: Mutex::default(),
        }
    }

    /// A key that `rng` draws.
    pub fn random(rng: &mut impl rand::Rng) -> Self {
        let mut secret = [0; 32];
        rng.fill_bytes(&mut secret);
        Self::new(&secret)
    }

    /// A token for a Retry packet sent to `client` at `now` (seconds since the Unix epoch): the
    /// client's first destination was `original_dcid`, the Retry's source is `retry_scid`.
    pub(crate) fn retry(
        &self,
        client: SocketAddr,
        original_dcid: &ConnectionId,
        retry_scid: &ConnectionId,
        now: u64,
        rng: &mut impl rand::Rng,
    ) -> Vec<u8> {
        self.seal(rng, |buf| {
            buf.push(RETRY);
            buf.extend_from_slice(&now.to_be_bytes());
            encode_ip(client.ip(), buf);
            buf.extend_from_slice(&client.port().to_be_bytes());
            for id in [original_dcid, retry_scid] {
                buf.push(id.len() as u8);
                buf.extend_from_slice(id);
            }
        })
    }

    /// A token for a NEW_TOKEN frame to a client at `ip`, issued at `now` (seconds since the Unix
    /// epoch), with what the client shall carry. The port may change until the client returns, so it is
    /// left out.
    pub(crate) fn new_token(
        &self,
        ip: IpAddr,
        now: u64,
        carried: Option<&Carried>,
        rng: &mut impl rand::Rng,
    ) -> Vec<u8> {
        self.seal(rng, |buf| {
            buf.push(carried.map_or(NEW_TOKEN, |_| CARRYING));
            buf.extend_from_slice(&now.to_be_bytes());
            encode_ip(ip, buf);
            if let Some(carried) = carried {
                carried.encode(buf);
            }
        })
    }

    /// Whether nobody has claimed what a client carried, in whichever token; it is claimed now.
    pub(crate) fn claim(&self, carried: &Carried) -> bool {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.first_use(carried.source, carried.observed)
    }

    /// Reads the `token` of an Initial packet that came from `client` to `dcid` at `now` (seconds
    /// since the Unix epoch).
    ///
    /// # Errors
    ///
    /// [`TokenError::Retry`] is worth INVALID_TOKEN (RFC 9000, section 8.1.3); with every other
    /// error the packet counts as one without a token.
    pub(crate) fn open(
        &self,
        token: &[u8],
        client: SocketAddr,
        dcid: &ConnectionId,
        now: u64,
    ) -> Result<Token, TokenError> {
        let mut buf = [0; MAX_LEN];
        let buf = buf.get_mut(..token.len()).ok_or(TokenError::Unknown)?;
        buf.copy_from_slice(token);
        let (&mut nonce, sealed) = buf
            .split_first_chunk_mut::<NONCE_LEN>()
            .ok_or(TokenError::Unknown)?;
        let plain = self
            .key
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), sealed)
            .map_err(|_| TokenError::Unknown)?;
        let mut id = [0; 8];
        id.copy_from_slice(&nonce[..8]);
        read(plain, u64::from_be_bytes(id), client, dcid, now)
    }

    fn seal(&self, rng: &mut impl rand::Rng, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        rng.fill_bytes(&mut nonce);
        let mut buf = Vec::with_capacity(MAX_LEN);
        buf.extend_from_slice(&nonce);
        write(&mut buf);
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut buf[NONCE_LEN..],
            )
            .expect("a token is far below the limit of the AEAD");
        buf.extend_from_slice(tag.as_ref());
        buf
    }
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey")
    }
}

/// The longest token this server makes, in bytes; longer ones are not its own.
const MAX_LEN: usize = NONCE_LEN + 1 + 8 + 17 + 2 + 21 + 21 + 16;

/// What a valid token proves: the client receives at the address it sends from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The client answers a Retry.
    Retry {
        /// Destination of the client's very first packet, for the transport parameters.
        original_dcid: ConnectionId,
        /// Source ID of the Retry, for the transport parameters.
        retry_scid: ConnectionId,
    },
    /// The client was here before.
    NewToken {
        /// Unique to the token: ask [`ReplayFilter`] whether it is used twice.
        id: u64,
        /// When it was issued, in seconds since the Unix epoch.
        issued: u64,
        /// What the client carries.
        carried: Option<Carried>,
    },
}

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// Not made with this key, or altered.
    Unknown,
    /// A Retry token that does not hold here and now.
    Retry(TokenFault),
    /// A NEW_TOKEN token that does not hold here and now.
    NewToken(TokenFault),
}

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// Issued too long ago, or in the future.
    Expired,
    /// Made for another address.
    Address,
    /// Made for another connection ID.
    ConnectionId,
}

fn read(
    plain: &[u8],
    id: u64,
    client: SocketAddr,
    dcid: &ConnectionId,
    now: u64,
) -> Result<Token, TokenError> {
    let mut reader = Reader::new(plain);
    let mut header = || -> Result<_, Truncated> {
        let kind = reader.u8()?;
        let issued = u64::from_be_bytes(reader.array()?);
        Ok((kind, issued, decode_ip(&mut reader)?))
    };
    let (kind, issued, ip) = header().map_err(|_| TokenError::Unknown)?;
    let check = |lifetime, port| {
        if !matches!(now.checked_sub(issued), Some(age) if age <= lifetime) {
            Err(TokenFault::Expired)
        } else if ip != client.ip().to_canonical() || port != client.port() {
            Err(TokenFault::Address)
        } else {
            Ok(())
        }
    };
    match kind {
        RETRY => {
            let (port, original_dcid, retry_scid) =
                decode_retry(&mut reader).ok_or(TokenError::Unknown)?;
            check(RETRY_TOKEN_LIFETIME, port).map_err(TokenError::Retry)?;
            if retry_scid != *dcid {
                return Err(TokenError::Retry(TokenFault::ConnectionId));
            }
            Ok(Token::Retry {
                original_dcid,
                retry_scid,
            })
        }
        NEW_TOKEN | CARRYING => {
            let carried = match kind {
                CARRYING => Some(Carried::decode(&mut reader).map_err(|_| TokenError::Unknown)?),
                _ => None,
            };
            check(NEW_TOKEN_LIFETIME, client.port()).map_err(TokenError::NewToken)?;
            Ok(Token::NewToken {
                id,
                issued,
                carried,
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

fn decode_retry(reader: &mut Reader<'_>) -> Option<(u16, ConnectionId, ConnectionId)> {
    let port = u16::from_be_bytes(reader.array().ok()?);
    let mut id = || {
        let len = usize::from(reader.u8().ok()?);
        ConnectionId::new(reader.take(len).ok()?)
    };
    Some((port, id()?, id()?))
}

#[cfg(test)]
mod tests;
