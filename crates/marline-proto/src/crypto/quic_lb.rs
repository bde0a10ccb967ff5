//! Connection IDs from which a load balancer reads the server (QUIC-LB, draft-ietf-quic-load-balancers-21).

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use aes::Aes128;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use marline_wire::ConnectionId;
use marline_wire::id::MAX_CONNECTION_ID_LEN;

use super::provider::hmac_sha256;
use super::worker::{WORKER_ID_LEN, WorkerField, WorkerKey};
use crate::rng::SecureRng;
use crate::settings::text_values;

/// Length of the key of QUIC-LB, in bytes.
pub const QUIC_LB_KEY_LEN: usize = 16;

/// Maximum length of a server ID, in bytes.
const MAX_SERVER_ID: usize = 15;

/// Minimum length of a nonce, in bytes (section 5.3).
const MIN_NONCE: usize = 4;

/// Maximum length of server ID and nonce together, in bytes (section 5.3).
const MAX_BLOCK: usize = MAX_CONNECTION_ID_LEN - 1;

/// The identifier of IDs from which no server can be read (section 3.2).
const UNROUTABLE: u8 = 7;

/// Length of a block of AES, in bytes.
const AES_BLOCK: usize = 16;

/// Maximum length of half of a block that takes four passes, in bytes.
const HALF: usize = MAX_BLOCK.div_ceil(2);

/// The reason why a configuration of QUIC-LB is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuicLbError {
    /// The identifier does not fit into three bits, or is the reserved one.
    #[error("the identifier of a configuration is 0 to 6, not {0}")]
    Config(u8),
    /// A server ID has 1 to 15 bytes.
    #[error("a server ID has 1 to {MAX_SERVER_ID} bytes, not {0}")]
    ServerId(usize),
    /// The text is not a server ID.
    #[error("a server ID is written as 1 to {MAX_SERVER_ID} bytes in hexadecimal, as \"c0ffee\"")]
    ServerIdText,
    /// The text is not a key.
    #[error("a key is written as 32 hexadecimal digits, as `openssl rand -hex 16` prints them")]
    Key,
    /// The nonce is too short: the least length, and that given, in bytes.
    #[error("a nonce has at least {0} bytes, not {1}")]
    Nonce(usize, usize),
    /// The connection ID would have this many bytes.
    #[error(
        "server ID and nonce make connection IDs of {0} bytes, of at most {MAX_CONNECTION_ID_LEN}; shorten the nonce"
    )]
    TooLong(usize),
    /// The connection IDs of a new configuration have another length, in bytes: that of the present ones, and theirs.
    #[error("connection IDs of {1} bytes in place of {0}: only a restart changes their length")]
    OtherLength(usize, usize),
    /// A new configuration has the identifier of the present one.
    #[error(
        "a new configuration needs an identifier other than {0}, by which balancers tell both apart"
    )]
    SameConfig(u8),
}

/// The identifier of a server within a configuration of QUIC-LB: 1 to 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerId {
    bytes: [u8; MAX_SERVER_ID],
    len: u8,
}

impl ServerId {
    /// The server ID `bytes`; `None` if there are none, or more than 15.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self {
            bytes: [0; MAX_SERVER_ID],
            len: u8::try_from(bytes.len()).ok().filter(|len| *len > 0)?,
        };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }
}

impl Deref for ServerId {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// In hexadecimal.
impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ServerId {
    type Err = QuicLbError;

    fn from_str(text: &str) -> Result<Self, QuicLbError> {
        let id = from_hex(text).and_then(|bytes| Self::new(&bytes));
        id.ok_or(QuicLbError::ServerIdText)
    }
}

text_values!(ServerId);

/// The key in `text`: 32 hexadecimal digits, which colons may separate.
///
/// # Errors
/// [`QuicLbError::Key`].
pub fn quic_lb_key(text: &str) -> Result<[u8; QUIC_LB_KEY_LEN], QuicLbError> {
    let key = from_hex(&text.trim().replace(':', ""));
    let key = key.and_then(|bytes| bytes.try_into().ok());
    key.ok_or(QuicLbError::Key)
}

/// The bytes that `text` has in hexadecimal.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    match digits?.as_chunks() {
        (pairs, []) => Some(
            pairs
                .iter()
                .map(|[high, low]| (high << 4 | low) as u8)
                .collect(),
        ),
        _ => None,
    }
}

/// The form of connection IDs under one configuration: what servers and balancers have in common.
#[derive(Clone)]
pub struct QuicLbFormat {
    config: u8,
    server_id_len: usize,
    nonce_len: usize,
    key: Option<[u8; QUIC_LB_KEY_LEN]>,
    cipher: Option<Aes128>,
}

impl PartialEq for QuicLbFormat {
    fn eq(&self, other: &Self) -> bool {
        let fields = |format: &Self| (format.config, format.server_id_len, format.nonce_len);
        fields(self) == fields(other) && self.key == other.key
    }
}

impl QuicLbFormat {
    /// The form of the configuration `config`, 0 to 6, with lengths of server ID and nonce in bytes. Without a `key`, everybody
    /// can read the server ID.
    ///
    /// # Errors
    /// [`QuicLbError`]: what is out of range.
    pub fn new(
        config: u8,
        server_id_len: usize,
        nonce_len: usize,
        key: Option<[u8; QUIC_LB_KEY_LEN]>,
    ) -> Result<Self, QuicLbError> {
        if config >= UNROUTABLE {
            return Err(QuicLbError::Config(config));
        }
        if !(1..=MAX_SERVER_ID).contains(&server_id_len) {
            return Err(QuicLbError::ServerId(server_id_len));
        }
        if nonce_len < MIN_NONCE {
            return Err(QuicLbError::Nonce(MIN_NONCE, nonce_len));
        }
        let format = Self {
            config,
            server_id_len,
            nonce_len,
            cipher: key.map(|key| Aes128::new(&key.into())),
            key,
        };
        match nonce_len > MAX_BLOCK || format.block_len() > MAX_BLOCK {
            true => Err(QuicLbError::TooLong(1 + server_id_len + nonce_len)),
            false => Ok(format),
        }
    }

    /// The identifier of the configuration, 0 to 6.
    pub fn config(&self) -> u8 {
        self.config
    }

    /// The bytes of a connection ID that a balancer reads: the first, server ID and nonce.
    fn read_len(&self) -> usize {
        1 + self.block_len()
    }

    /// The server ID of the connection ID `id`, or of a packet's bytes from the connection ID on. `None` if it is of another
    /// configuration, or too short. Of an ID that no server made, it is any.
    pub fn server_id(&self, id: &[u8]) -> Option<ServerId> {
        let (first, rest) = id.split_first()?;
        let read = rest.get(..self.block_len())?;
        if first >> 5 != self.config {
            return None;
        }
        let mut block = [0; MAX_BLOCK];
        let block = &mut block[..self.block_len()];
        block.copy_from_slice(read);
        self.decrypt(block);
        ServerId::new(&block[..self.server_id_len])
    }

    fn block_len(&self) -> usize {
        self.server_id_len + self.nonce_len
    }

    /// Encrypts server ID and nonce in place (section 5.4).
    fn encrypt(&self, block: &mut [u8]) {
        let Some(cipher) = &self.cipher else {
            return;
        };
        match <&mut [u8; AES_BLOCK]>::try_from(&mut *block) {
            Ok(single) => cipher.encrypt_block(single.into()),
            Err(_) => Halves::of(block).passes(cipher, [1, 2, 3, 4], block),
        }
    }

    /// Decrypts server ID and nonce in place (section 5.5).
    fn decrypt(&self, block: &mut [u8]) {
        let Some(cipher) = &self.cipher else {
            return;
        };
        // The last pass changes the right half, which a short server ID does not reach.
        let is_in_left = 2 * self.server_id_len <= block.len();
        match <&mut [u8; AES_BLOCK]>::try_from(&mut *block) {
            Ok(single) => cipher.decrypt_block(single.into()),
            Err(_) if is_in_left => Halves::of(block).passes(cipher, [4, 3, 2], block),
            Err(_) => Halves::of(block).passes(cipher, [4, 3, 2, 1], block),
        }
    }
}

impl fmt::Debug for QuicLbFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLbFormat")
            .field("config", &self.config)
            .field("server_id_len", &self.server_id_len)
            .field("nonce_len", &self.nonce_len)
            .field("is_encrypted", &self.key.is_some())
            .finish()
    }
}

/// The halves of a block. Of an odd number of bytes, each has half of the one in the middle.
struct Halves {
    left: [u8; HALF],
    right: [u8; HALF],
    /// The length of the block.
    len: usize,
}

impl Halves {
    fn of(block: &[u8]) -> Self {
        let mut halves = Self {
            left: [0; HALF],
            right: [0; HALF],
            len: block.len(),
        };
        let half = halves.half();
        halves.left[..half].copy_from_slice(&block[..half]);
        halves.right[..half].copy_from_slice(&block[block.len() - half..]);
        halves.clear();
        halves
    }

    fn half(&self) -> usize {
        self.len.div_ceil(2)
    }

    /// Clears the four bits of each half that belong to the other one.
    fn clear(&mut self) {
        if self.len % 2 == 1 {
            self.left[self.half() - 1] &= 0xf0;
            self.right[0] &= 0x0f;
        }
    }

    /// Does these passes, and joins the halves in `block`. Odd passes change the right half, even ones the left.
    fn passes<const N: usize>(mut self, cipher: &Aes128, passes: [u8; N], block: &mut [u8]) {
        let half = self.half();
        for pass in passes {
            let (from, to) = match pass % 2 {
                1 => (&self.left, &mut self.right),
                _ => (&self.right, &mut self.left),
            };
            let mut expanded = [0; AES_BLOCK];
            expanded[..half].copy_from_slice(&from[..half]);
            // A block has at most 19 bytes.
            expanded[AES_BLOCK - 2] = self.len as u8;
            expanded[AES_BLOCK - 1] = pass;
            cipher.encrypt_block((&mut expanded).into());
            for (byte, mask) in to[..half].iter_mut().zip(expanded) {
                *byte ^= mask;
            }
            self.clear();
        }
        let right = block.len() - half;
        block[..half].copy_from_slice(&self.left[..half]);
        if self.len % 2 == 1 {
            block[right] |= self.right[0];
            block[right + 1..].copy_from_slice(&self.right[1..half]);
        } else {
            block[right..].copy_from_slice(&self.right[..half]);
        }
    }
}

/// A server's part of a configuration of QUIC-LB.
#[derive(Clone, Debug, PartialEq)]
pub struct QuicLbConfig {
    format: QuicLbFormat,
    server_id: ServerId,
    encode_length: bool,
}

impl QuicLbConfig {
    /// Minimum length of a server's nonces in bytes: no record is kept of them over restarts, each of which begins at a random
    /// one, and ranges of shorter ones would overlap.
    pub const MIN_NONCE_LEN: usize = 8;

    /// Bytes that follow those for the balancer: the number of the worker, which every server has, so that the length tells
    /// nothing about it (section 5.4).
    const WORKER_LEN: usize = 1;

    /// The configuration of the server `server_id`, whose connection IDs have the form `format`. With `encode_length`, the first
    /// byte has the length of the others (section 3.3).
    ///
    /// # Errors
    /// The server ID does not have the length of the format, or the nonce is too short or too long.
    pub fn new(
        format: QuicLbFormat,
        server_id: ServerId,
        encode_length: bool,
    ) -> Result<Self, QuicLbError> {
        if server_id.len() != format.server_id_len {
            return Err(QuicLbError::ServerId(server_id.len()));
        }
        if format.nonce_len < Self::MIN_NONCE_LEN {
            return Err(QuicLbError::Nonce(Self::MIN_NONCE_LEN, format.nonce_len));
        }
        let config = Self {
            format,
            server_id,
            encode_length,
        };
        match config.id_len() > MAX_CONNECTION_ID_LEN {
            true => Err(QuicLbError::TooLong(config.id_len())),
            false => Ok(config),
        }
    }

    /// The default length of the nonce beside a server ID of `server_id_len` bytes: both together are one block of AES, where
    /// there is room for it.
    pub fn default_nonce_len(server_id_len: usize) -> usize {
        let room = MAX_BLOCK - Self::WORKER_LEN;
        let with_one_block = AES_BLOCK.saturating_sub(server_id_len);
        with_one_block
            .max(Self::MIN_NONCE_LEN)
            .min(room.saturating_sub(server_id_len))
    }

    /// The length of the connection IDs, in bytes.
    pub fn id_len(&self) -> usize {
        self.format.read_len() + Self::WORKER_LEN
    }

    fn first_byte(&self, random: u8) -> u8 {
        let low = match self.encode_length {
            // At most 19.
            true => self.id_len() as u8 - 1,
            false => random & 0x1f,
        };
        self.format.config << 5 | low
    }
}

/// The connection IDs of a server behind a load balancer: the present configuration, which can be replaced, and the nonces.
pub struct QuicLb {
    present: RwLock<QuicLbConfig>,
    /// The first bytes of nonces longer than the counter.
    prefix: [u8; MAX_BLOCK],
    /// Counts from a random number on under all configurations, so that none has a nonce twice.
    counter: AtomicU64,
    id_len: usize,
}

impl QuicLb {
    /// The connection IDs of a server with the configuration `config`; nonces begin at a number that derives from `seed`, 32
    /// unpredictable bytes.
    pub fn new(config: QuicLbConfig, seed: &[u8; 32]) -> Self {
        let mut rng = SecureRng::from_seed(hmac_sha256(seed, b"nonces of connection IDs"));
        let mut prefix = [0; MAX_BLOCK];
        rng.fill(&mut prefix);
        Self {
            prefix,
            counter: AtomicU64::new(rng.number()),
            id_len: config.id_len(),
            present: RwLock::new(config),
        }
    }

    /// The length of the connection IDs, in bytes.
    pub fn id_len(&self) -> usize {
        self.id_len
    }

    /// Makes new connection IDs by `config` from now on. Returns whether it differs from the present one: connections then
    /// [renew](crate::Connection::renew_connection_ids) theirs (section 3.1).
    ///
    /// # Errors
    /// See [`check`](Self::check); nothing has changed.
    pub fn replace(&self, config: QuicLbConfig) -> Result<bool, QuicLbError> {
        let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = Self::check_next(&present, &config)?;
        *present = config;
        Ok(is_other)
    }

    /// Whether `config` can [replace](Self::replace) the present one, and differs from it.
    ///
    /// # Errors
    /// It has connection IDs of another length, or the identifier of the present one.
    pub fn check(&self, config: &QuicLbConfig) -> Result<bool, QuicLbError> {
        let present = self.present.read().unwrap_or_else(PoisonError::into_inner);
        Self::check_next(&present, config)
    }

    fn check_next(present: &QuicLbConfig, next: &QuicLbConfig) -> Result<bool, QuicLbError> {
        if next == present {
            return Ok(false);
        }
        if next.id_len() != present.id_len() {
            return Err(QuicLbError::OtherLength(present.id_len(), next.id_len()));
        }
        match next.format.config == present.format.config {
            true => Err(QuicLbError::SameConfig(next.format.config)),
            false => Ok(true),
        }
    }

    /// Whether observers can read the server from connection IDs: peers then get one at a time, for one would be as good as
    /// another to link their addresses by (section 8).
    pub(crate) fn is_readable(&self) -> bool {
        let present = self.present.read().unwrap_or_else(PoisonError::into_inner);
        present.format.key.is_none()
    }

    /// The bytes of a connection ID that have to do with the worker's number.
    pub(crate) fn worker_field(&self) -> WorkerField {
        WorkerField::last_of(self.id_len)
    }

    /// A new connection ID, of the worker with this number, masked under `worker_key`.
    pub(crate) fn connection_id(
        &self,
        worker: u8,
        worker_key: &WorkerKey,
        rng: &mut SecureRng,
    ) -> ConnectionId {
        let config = self.present.read().unwrap_or_else(PoisonError::into_inner);
        let format = &config.format;
        let mut id = [0; MAX_CONNECTION_ID_LEN];
        let id = &mut id[..self.id_len];
        id[0] = config.first_byte(rng.byte());
        let block = &mut id[1..format.read_len()];
        let (server_id, nonce) = block.split_at_mut(format.server_id_len);
        server_id.copy_from_slice(&config.server_id);
        match format.key {
            Some(_) => self.fill_counted(nonce),
            // Nonces that everybody reads must not be linkable.
            None => rng.fill(nonce),
        }
        format.encrypt(block);
        worker_key.write(id, self.worker_field(), worker);
        ConnectionId::new(id).unwrap_or(ConnectionId::EMPTY)
    }

    /// The next nonce that has not been used.
    fn fill_counted(&self, nonce: &mut [u8]) {
        let count = self.counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let (prefix, counter) = nonce.split_at_mut(nonce.len().saturating_sub(count.len()));
        prefix.copy_from_slice(&self.prefix[..prefix.len()]);
        counter.copy_from_slice(&count[count.len() - counter.len()..]);
    }
}

impl fmt::Debug for QuicLb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuicLb")
    }
}

// The worker's number is masked by bytes of the nonce alone where these are not encrypted.
const _: () = assert!(QuicLbConfig::MIN_NONCE_LEN >= WORKER_ID_LEN - 1);

#[cfg(test)]
mod tests;
