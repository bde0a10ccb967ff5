//! The destinations of records: files of CSV, Parquet and IPFIX, and messages of IPFIX.

mod columns;
mod csv;
mod file;
mod files;
mod ipfix;
#[cfg(feature = "parquet")]
mod parquet;

use std::io;

pub use columns::COLUMNS;
pub use file::{Format, OutputFile};
pub use files::{Files, Rotation, Written};
pub use ipfix::{IpfixEncoder, IpfixMessage, IpfixSession};

use crate::record::Record;

/// Takes records.
pub trait Sink {
    /// Takes a record.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if it cannot be written.
    fn write(&mut self, record: &Record) -> Result<(), OutputError>;

    /// The time of packets is `now_ns`, in nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if something was due that cannot be written.
    fn advance(&mut self, now_ns: u64) -> Result<(), OutputError> {
        let _ = now_ns;
        Ok(())
    }
}

impl Sink for Vec<Record> {
    fn write(&mut self, record: &Record) -> Result<(), OutputError> {
        self.push(record.clone());
        Ok(())
    }
}

/// Records cannot be written; the message names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The file cannot be written.
    #[error("{name}: {error}")]
    Io {
        /// Its name.
        name: String,
        /// The cause.
        error: io::Error,
    },
    /// The name does not end with `.csv`, `.ipfix` or, where supported, `.parquet`.
    #[error("{name}: {}", Format::advice())]
    Format {
        /// The name.
        name: String,
    },
}

#[cfg(test)]
mod tests;
