//! The state that a server keeps over restarts: its keys, the sessions that clients may resume, and the certificate that
//! it made.
//!
//! | file | has |
//! | --- | --- |
//! | `keys` | the secrets of stateless resets, address tokens and session tickets |
//! | `sessions-ADDRESS` | the TLS sessions of QUIC, which 0-RTT needs; each is used once |
//! | `identity.pem` | the key and the self-signed certificate of a server that was given none |
//! | `certificate.pem` | that certificate alone, for clients |
//! | `acme-...` | accounts at certificate authorities, and the certificates that these have issued, with their keys |
//!
//! Only their owner can read the files. A new one is complete before it gets its name.

mod error;
mod files;
mod identity;
mod keys;
mod sessions;
mod shared;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::{EndpointConfig, ResetKey, TicketKey, TokenKey, WorkerKey, hmac_sha256};

pub use self::error::StateError;
use self::files::Existing;
use self::keys::{Keys, ROTATION};
use self::sessions::PREFIX;
pub(crate) use self::sessions::Sessions;
pub use self::shared::{SharedKeys, read_secret};

/// A directory in which servers of one user keep their state.
///
/// Address tokens and session tickets are sealed with a secret that is replaced every day; the previous one is still
/// accepted. The secret of stateless resets stays: a connection has no end date, and an attacker with the secret can
/// only end connections.
#[derive(Debug)]
pub struct StateDirectory {
    path: PathBuf,
    keys: Mutex<Keys>,
    tokens: Arc<TokenKey>,
    tickets: Arc<TicketKey>,
}

impl StateDirectory {
    /// Opens the directory at `path`, or creates it, at `unix_time` since 1970.
    ///
    /// # Errors
    /// [`StateError`] names the file that cannot be used, which is left as it is.
    pub fn open(path: &Path, unix_time: Duration) -> Result<Self, StateError> {
        files::make_directory(path)?;
        let file = path.join("keys");
        let keys = Keys::load_or_create(&file, unix_time)?;
        let oldest = keys.previous().unwrap_or_else(|| keys.present());
        let tokens = TokenKey::new(&oldest.token());
        let tickets = TicketKey::new(&oldest.ticket(), ROTATION);
        if keys.previous().is_some() {
            tokens.rotate(&keys.present().token());
            tickets.rotate(&keys.present().ticket());
        }
        let state = Self {
            path: path.to_owned(),
            keys: Mutex::new(keys),
            tokens: Arc::new(tokens),
            tickets: Arc::new(tickets),
        };
        state.rotate(unix_time)?;
        Ok(state)
    }

    /// Whether the directory at `path` can be opened, as far as its mode and that of its keys say. It need not exist, and nothing
    /// is written.
    ///
    /// # Errors
    /// [`StateError`] names the file that cannot be used.
    pub fn check(path: &Path) -> Result<(), StateError> {
        match files::check_directory(path)? {
            true => Keys::check(&path.join("keys")),
            false => Ok(()),
        }
    }

    /// The content of the file `name` of this directory; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, others can read it, or it is not text.
    pub fn load(&self, name: &str) -> Result<Option<String>, StateError> {
        files::read(&self.path.join(name))
    }

    /// Writes the file `name` of this directory, for its owner only, in one step.
    ///
    /// # Errors
    /// It cannot be written; an earlier one stays.
    pub fn save(&self, name: &str, content: &str) -> Result<(), StateError> {
        files::write(&self.path.join(name), content.as_bytes(), Existing::Replace)
    }

    /// The path of the file `name` of this directory.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Replaces the secret of tokens and tickets if it is a day old, or if another server has replaced it. Returns when
    /// to call this again.
    ///
    /// # Errors
    /// The new secret cannot be written; the present one stays in use.
    pub(super) fn rotate(&self, unix_time: Duration) -> Result<Duration, StateError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.rotate(&self.path.join("keys"), unix_time)? {
            self.tokens.rotate(&keys.present().token());
            self.tickets.rotate(&keys.present().ticket());
        }
        Ok(keys.left(unix_time))
    }

    /// The remaining time of use of the present secret of tokens and tickets.
    pub(super) fn until_rotation(&self, unix_time: Duration) -> Duration {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.left(unix_time)
    }

    /// Gives an endpoint that listens on `address` the keys of this directory.
    ///
    /// The key of stateless resets depends on the address: with one for several servers, an attacker could have one of
    /// them reset a connection of another (RFC 9000, section 21.11).
    pub(crate) fn set_keys(&self, config: &mut EndpointConfig, address: SocketAddr) {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let purpose = format!("stateless reset {address}");
        config.reset_key = Arc::new(ResetKey::new(&hmac_sha256(
            &keys.reset(),
            purpose.as_bytes(),
        )));
        config.token_key = Arc::clone(&self.tokens);
        config.worker_key = Arc::new(WorkerKey::new(&hmac_sha256(
            &keys.reset(),
            b"connection IDs",
        )));
    }

    /// The key of session tickets over TCP.
    pub(super) fn tickets(&self) -> Arc<TicketKey> {
        Arc::clone(&self.tickets)
    }

    /// The sessions of the QUIC endpoint at `address`. Those of a configuration other than `settings` are discarded: the
    /// settings that clients remember would no longer hold (RFC 9000, section 7.4.1). If they `are_in_use` by another process,
    /// they have to be taken over.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(super) fn sessions(
        &self,
        address: SocketAddr,
        settings: &[u8; 32],
        are_in_use: bool,
    ) -> Result<Arc<Sessions>, StateError> {
        // A colon is not allowed in names of files everywhere.
        let name = format!("{PREFIX}{address}").replace([':', '%'], "_");
        let path = self.path.join(name);
        Ok(Arc::new(match are_in_use {
            true => Sessions::of_other(&path, settings),
            false => Sessions::open(&path, settings)?,
        }))
    }
}
