//! A file of records, which appears under its name only when it is complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::csv::CsvWriter;
#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;
use super::{OutputError, Sink};
use crate::record::Record;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// The format that the end of a file's name stands for.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            #[cfg(feature = "parquet")]
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    pub(super) const fn advice() -> &'static str {
        if cfg!(feature = "parquet") {
            "the name of a file of records ends with .parquet or .csv"
        } else {
            "the name of a file of records ends with .csv (this program was built without Parquet)"
        }
    }
}

/// A file that is being written. Until it is [finished](Self::finish) it is `.NAME.part` beside its name, and is removed
/// if it is dropped.
pub struct OutputFile {
    path: PathBuf,
    part: Part,
    writer: Writer,
}

enum Writer {
    Csv(Box<CsvWriter<BufWriter<File>>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter<BufWriter<File>>>),
}

/// A file that is removed when dropped.
struct Part(Option<PathBuf>);

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nobody can be told.
            let _ = fs::remove_file(path);
        }
    }
}

impl OutputFile {
    /// Begins a file in the format that its name stands for.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if the name stands for no format, or the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let io = |error| OutputError::Io {
            name: path.display().to_string(),
            error,
        };
        let format = Format::of(path).zip(path.file_name());
        let Some((format, name)) = format else {
            let name = path.display().to_string();
            return Err(OutputError::Format { name });
        };
        let mut part = OsString::from(".");
        part.push(name);
        part.push(".part");
        let part = path.with_file_name(part);
        let file = BufWriter::new(File::create(&part).map_err(io)?);
        let part = Part(Some(part));
        let writer = match format {
            Format::Csv => CsvWriter::new(file).map(|writer| Writer::Csv(Box::new(writer))),
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                ParquetWriter::new(file).map(|writer| Writer::Parquet(Box::new(writer)))
            }
        };
        Ok(Self {
            path: path.to_owned(),
            part,
            writer: writer.map_err(io)?,
        })
    }

    /// Completes the file and gives it its name, which a file that has it loses.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if what is left cannot be written.
    pub fn finish(mut self) -> Result<(), OutputError> {
        let file = match self.writer {
            Writer::Csv(writer) => writer.finish(),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.finish(),
        };
        let renamed = file.and_then(|mut file| {
            file.flush()?;
            match self.part.0.as_deref() {
                Some(part) => fs::rename(part, &self.path),
                None => Ok(()),
            }
        });
        if renamed.is_ok() {
            self.part.0 = None;
        }
        renamed.map_err(|error| OutputError::Io {
            name: self.path.display().to_string(),
            error,
        })
    }
}

impl Sink for OutputFile {
    fn write(&mut self, record: &Record) -> Result<(), OutputError> {
        let written: io::Result<()> = match &mut self.writer {
            Writer::Csv(writer) => writer.write(record),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.write(record),
        };
        written.map_err(|error| OutputError::Io {
            name: self.path.display().to_string(),
            error,
        })
    }
}
