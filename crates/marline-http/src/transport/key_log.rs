//! Writing the secrets of connections to a file, for programs that decrypt captures (RFC 9850).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::KeyLog;

/// A key log. Its readers can decrypt the connections whose secrets it contains: it is for
/// debugging only.
#[derive(Clone)]
pub struct KeyLogFile(Arc<Log>);

struct Log(Mutex<File>);

impl KeyLogFile {
    /// Opens a file to append to, or creates one that only its owner can read.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self(Arc::new(Log(Mutex::new(options.open(path)?)))))
    }

    /// The log for a configuration of TLS.
    pub(crate) fn log(&self) -> Arc<dyn KeyLog> {
        Arc::<Log>::clone(&self.0)
    }
}

impl fmt::Debug for KeyLogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogFile")
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl KeyLog for Log {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection must not fail because of its log.
        let _ = file.write_all(line.as_bytes());
    }
}
