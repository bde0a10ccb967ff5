//! What all responses of a server share.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use marline::Prefix;

use super::Context;
use super::account::Account;
use super::buffers::{Buffers, BuffersUsedUp, Grant};
use super::exposition::head;
use super::open_files::OpenFiles;
use crate::limits;
use crate::runtime::RuntimeHandle;

/// Budgets of a server.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) files: OpenFiles,
    pub(super) buffers: Buffers,
    accounts: AtomicU64,
}

impl Resources {
    /// Allows `files` that are open, and `bytes` that are buffered.
    pub(super) fn new(files: u64, bytes: u64) -> Self {
        Self {
            files: OpenFiles::new(files),
            buffers: Buffers::new(bytes),
            accounts: AtomicU64::new(0),
        }
    }

    /// A new account of a client at `address`.
    pub(super) fn account(&self, address: IpAddr) -> Account {
        let client = Prefix::of_network(address);
        Account::new(client, self.accounts.fetch_add(1, Relaxed))
    }

    /// Writes what is in use, as metrics.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let name = "marline_open_files";
        head(out, name, "gauge", "Files that responses hold open.")?;
        writeln!(out, "{name} {}", self.files.open())?;
        let name = "marline_buffered_bytes";
        let help = "Bytes of files that were read, and that clients have not received.";
        head(out, name, "gauge", help)?;
        writeln!(out, "{name} {}", self.buffers.used())
    }
}

/// The extension of a request that says which budgets its response uses, and how.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) account: Account,
    pub(super) resources: Arc<Resources>,
    pub(super) runtime: RuntimeHandle,
    /// How long it may wait for a part of the buffers.
    pub(super) buffer_timeout: Duration,
    /// How much of the response is read at once.
    pub(super) chunk: Chunk,
}

impl Origin {
    /// Requests of a client at `address` whose responses have one account.
    pub(super) fn new(context: &Context, address: IpAddr, chunk: Chunk) -> Self {
        Self {
            account: context.resources.account(address),
            resources: Arc::clone(&context.resources),
            runtime: context.runtime.clone(),
            buffer_timeout: context.current.get().limits.buffer_timeout,
            chunk,
        }
    }

    /// Takes a part of the buffers at once, if the client may take some.
    pub(super) fn try_take(&self, wanted: usize) -> Option<Grant> {
        self.resources.buffers.try_take(&self.account, wanted)
    }

    /// Waits for a part of the buffers.
    pub(super) fn take(
        &self,
        wanted: usize,
    ) -> impl Future<Output = Result<Grant, BuffersUsedUp>> + Send + use<> {
        let (account, runtime) = (self.account.clone(), self.runtime.clone());
        let buffers = self.resources.buffers.clone();
        buffers.take(account, wanted, runtime, self.buffer_timeout)
    }
}

/// The size of the next chunk of a response. Clones are the same size.
#[derive(Clone, Debug)]
pub(super) struct Chunk(Arc<AtomicUsize>);

impl Chunk {
    /// Chunks of `bytes`.
    pub(super) fn of(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// The stream can take `room` bytes. Less than [`limits::MIN_CHUNK_BYTES`] is not worth reading.
    pub(super) fn fit(&self, room: usize) {
        let bytes = room.clamp(limits::MIN_CHUNK_BYTES, limits::FILE_CHUNK_BYTES);
        self.0.store(bytes, Relaxed);
    }
}

impl Default for Chunk {
    fn default() -> Self {
        Self::of(limits::FILE_CHUNK_BYTES)
    }
}
