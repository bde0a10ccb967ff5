//! Where records go: CSV and Parquet files.

mod columns;
mod csv;
mod file;
#[cfg(feature = "parquet")]
mod parquet;

use std::io;

pub use columns::COLUMNS;
pub use file::{Format, OutputFile};

use crate::record::Record;

/// Takes records.
pub trait Sink {
    /// Takes one.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if it cannot be written.
    fn write(&mut self, record: &Record) -> Result<(), OutputError>;
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
        /// Why.
        error: io::Error,
    },
    /// The name ends with neither `.csv` nor, where this program has it, `.parquet`.
    #[error("{name}: {}", Format::advice())]
    Format {
        /// The name.
        name: String,
    },
}

#[cfg(test)]
mod tests;
