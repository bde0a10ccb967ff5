//! Files that are written while packets wait for nobody.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Bytes handed over at a time.
const CHUNK: usize = 1 << 16;

/// Writes to a file by way of another thread: never waits for the disk.
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
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// The file cannot be made, or the system refuses a thread.
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
        // The thread ends early when it cannot write; `Spooler::finish` says why.
        self.chunks
            .send(chunk)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // If that fails, the thread knows.
        let _ = self.flush();
    }
}

impl Spooler {
    /// Waits until all is written; call it when the [`Spool`] has been dropped.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(self) -> io::Result<()> {
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
