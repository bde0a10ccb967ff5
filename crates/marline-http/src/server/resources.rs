//! What all responses of a server share.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use marline::Prefix;

use super::buffers::Buffers;
use super::exposition::head;
use super::open_files::OpenFiles;
use crate::limits;

/// Budgets of a server.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) files: OpenFiles,
    pub(super) buffers: Buffers,
}

impl Resources {
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

/// The extension of a request that says who sent it, and which budgets its response uses.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) client: Prefix,
    pub(super) resources: Arc<Resources>,
    /// How much of the response is read at once.
    pub(super) chunk: Chunk,
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
