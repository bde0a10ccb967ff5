//! Records without the addresses that were captured: Crypto-PAn (Xu, Fan, Ammar, Moon, "Prefix-preserving IP address
//! anonymization", ICNP 2002).
//!
//! Two addresses that share a prefix of n bits share one of n bits afterwards, so that networks remain distinguishable; the
//! key's owner can compute the original of each. Names of hosts are replaced by a keyed hash of the whole name.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use aes::Aes128;
use aes::cipher::{BlockEncrypt, KeyInit};
use marline_proto::hmac_sha256;

/// Bytes of a key: 16 for AES, and 16 for the padding.
const KEY_LEN: usize = 32;

/// Bytes of the hash of a name: the chance that two of a million million names collide is 1 in 10^14.
const NAME_LEN: usize = 16;

/// Replaces addresses and names by others, which depend on a key.
#[derive(Clone)]
pub struct Anonymizer {
    cipher: Aes128,
    /// The bits after the prefix of an address.
    padding: u128,
    name_key: [u8; 32],
}

impl std::fmt::Debug for Anonymizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anonymizer").finish_non_exhaustive()
    }
}

/// A key of an anonymizer cannot be used; the message names the file and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It cannot be read.
    #[error("{name}: {error}")]
    Io {
        /// The file.
        name: String,
        /// The cause.
        error: io::Error,
    },
    /// It has another length than a key.
    #[error(
        "{name}: is not a key of 32 bytes or 64 hexadecimal digits; `head -c 32 /dev/urandom > FILE` makes one"
    )]
    Length {
        /// The file.
        name: String,
    },
    /// Others may read it.
    #[error(
        "{name}: others can read this key; `chmod 600` it, and do not use one that others have read"
    )]
    Permissions {
        /// The file.
        name: String,
    },
}

impl Anonymizer {
    /// The anonymizer of a key.
    pub fn new(key: &[u8; KEY_LEN]) -> Self {
        let mut first = [0; 16];
        first.copy_from_slice(&key[..16]);
        let mut second = [0; 16];
        second.copy_from_slice(&key[16..]);
        let cipher = Aes128::new(&first.into());
        let padding = encrypt(&cipher, u128::from_be_bytes(second));
        Self {
            cipher,
            padding,
            name_key: hmac_sha256(key, b"names of hosts"),
        }
    }

    /// The anonymizer with the key in a file, in bytes or in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if it cannot be read, others than its owner may read it, or it is not a key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let name = || path.display().to_string();
        let io = |error| KeyError::Io {
            name: name(),
            error,
        };
        let file = File::open(path).map_err(io)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            /// The rights of groups and others.
            const OTHERS: u32 = 0o077;
            let mode = file.metadata().map_err(io)?.permissions().mode();
            if mode & OTHERS != 0 {
                return Err(KeyError::Permissions { name: name() });
            }
        }
        // A byte more than the longest key: digits, and the end of their line.
        let mut text = Vec::new();
        let longest = 2 * KEY_LEN as u64 + 2;
        file.take(longest + 1).read_to_end(&mut text).map_err(io)?;
        let key = read_key(&text).ok_or_else(|| KeyError::Length { name: name() })?;
        Ok(Self::new(&key))
    }

    /// The replacement of an address.
    pub fn address(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => {
                let bits = u128::from(address.to_bits()) << 96;
                let bits = self.prefixes(bits, 32) >> 96;
                Ipv4Addr::from_bits(bits as u32).into()
            }
            IpAddr::V6(address) => {
                Ipv6Addr::from_bits(self.prefixes(address.to_bits(), 128)).into()
            }
        }
    }

    /// The replacement of a name: 32 hexadecimal digits.
    pub fn name(&self, name: &str) -> String {
        let hash = hmac_sha256(&self.name_key, name.as_bytes());
        let digits = hash[..NAME_LEN].iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    }

    /// Flips each of the first bits of an address or not, depending on the bits before it.
    fn prefixes(&self, bits: u128, count: u32) -> u128 {
        let mut flipped = 0;
        for position in 0..count {
            // Of the address, the bits before this one.
            let prefix = !u128::MAX.checked_shr(position).unwrap_or(0);
            let block = bits & prefix | self.padding & !prefix;
            let bit = encrypt(&self.cipher, block) >> 127;
            flipped |= bit << (127 - position);
        }
        bits ^ flipped
    }
}

fn encrypt(cipher: &Aes128, block: u128) -> u128 {
    let mut block = block.to_be_bytes().into();
    cipher.encrypt_block(&mut block);
    u128::from_be_bytes(block.into())
}

fn read_key(text: &[u8]) -> Option<[u8; KEY_LEN]> {
    if let Ok(key) = text.try_into() {
        return Some(key);
    }
    let text = std::str::from_utf8(text).ok()?.trim_ascii_end();
    if text.len() != 2 * KEY_LEN || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; KEY_LEN];
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests;
