//! Files that are written by a thread of their own, so that the driver never waits for the disk.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Bytes handed over at a time.
const CHUNK: usize = 1 << 16;

/// Writes to a file through another thread.
#[derive(Debug)]
pub struct Spool {
    chunk: Vec<u8>,
    chunks: Sender<Vec<u8>>,
}

/// The thread behind a [`Spool`].
#[derive(Debug)]
pub struct Spooler {
    thread: JoinHandle<io::Result<()>>,
}

impl Spool {
    /// Creates the file, or truncates it.
    ///
    /// # Errors
    /// The file cannot be created, or the system refuses to start a thread.
    pub fn create(path: &Path) -> io::Result<(Self, Spooler)> {
        let mut file = File::create(path)?;
        let (chunks, receiver): (_, Receiver<Vec<u8>>) = channel();
        let thread = thread::Builder::new()
            .name("spool".to_owned())
            .spawn(move || receiver.iter().try_for_each(|chunk| file.write_all(&chunk)))?;
        let chunk = Vec::with_capacity(CHUNK);
        Ok((Self { chunk, chunks }, Spooler { thread }))
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        // The thread ends early if it cannot write; `Spooler::finish` returns the error.
        self.chunks
            .send(chunk)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // This fails only if the thread has ended; `Spooler::finish` returns its error.
        let _ = self.flush();
    }
}

impl Spooler {
    /// Waits until everything is written; call it after the [`Spool`] has been dropped.
    ///
    /// # Errors
    /// A write failed.
    pub fn finish(self) -> io::Result<()> {
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
