//! Logs of runs in memory.

use std::io;
use std::sync::{Arc, Mutex};

/// A log that can be read while it is written.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The content written so far.
    pub(crate) fn content(&self) -> Vec<u8> {
        self.0.lock().expect("no writer panicked").clone()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().expect("no writer panicked");
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
