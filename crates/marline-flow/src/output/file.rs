//! A file of records, which appears under its name only when it is complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::csv::CsvWriter;
use super::ipfix::IpfixWriter;
#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;
use super::{OutputError, Sink};
use crate::anonymize::Anonymizer;
use crate::record::Record;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Messages of IPFIX (RFC 5655).
    Ipfix,
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
            "ipfix" => Some(Self::Ipfix),
            #[cfg(feature = "parquet")]
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    pub(super) const fn advice() -> &'static str {
        if cfg!(feature = "parquet") {
            "the name of a file of records ends with .parquet, .csv or .ipfix"
        } else {
            "the name of a file of records ends with .csv or .ipfix (this program was built without Parquet)"
        }
    }
}

/// A file that is being written. Until it is [finished](Self::finish) it is `.NAME.part` beside its name, and is removed
/// if it is dropped.
pub struct OutputFile {
    path: PathBuf,
    part: Part,
    writer: Writer,
    anonymizer: Option<Anonymizer>,
    records: u64,
}

enum Writer {
    Csv(Box<CsvWriter<Counted>>),
    Ipfix(Box<IpfixWriter<Counted>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter<Counted>>),
}

/// A file whose bytes are counted.
pub(super) struct Counted {
    file: BufWriter<File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
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
    /// Begins a file in the format that its name stands for. Addresses and names in it pass the `anonymizer`.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if the name stands for no format, or the file cannot be created.
    pub fn create(path: &Path, anonymizer: Option<Anonymizer>) -> Result<Self, OutputError> {
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
        let file = Counted {
            file: BufWriter::new(File::create(&part).map_err(io)?),
            bytes: 0,
        };
        let part = Part(Some(part));
        let writer = match format {
            Format::Csv => CsvWriter::new(file).map(|writer| Writer::Csv(Box::new(writer))),
            Format::Ipfix => {
                let writer = IpfixWriter::new(file, anonymizer.clone());
                Ok(Writer::Ipfix(Box::new(writer)))
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                ParquetWriter::new(file).map(|writer| Writer::Parquet(Box::new(writer)))
            }
        };
        Ok(Self {
            path: path.to_owned(),
            part,
            writer: writer.map_err(io)?,
            anonymizer,
            records: 0,
        })
    }

    /// How many records were written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many bytes the file has so far, about: of Parquet, those that wait for the end of a row group count as before they are
    /// compressed.
    pub fn size(&self) -> u64 {
        match &self.writer {
            Writer::Csv(writer) => writer.size(),
            Writer::Ipfix(writer) => writer.size(),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.size(),
        }
    }

    /// Completes the file and gives it its name, which a file that has it loses. Returns its size in bytes.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if what is left cannot be written.
    pub fn finish(self) -> Result<u64, OutputError> {
        let path = self.path.clone();
        self.finish_as(&path)
    }

    /// Completes the file and gives it this name, in the same directory.
    pub(super) fn finish_as(mut self, path: &Path) -> Result<u64, OutputError> {
        let file = match self.writer {
            Writer::Csv(writer) => writer.finish(),
            Writer::Ipfix(writer) => writer.finish(),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.finish(),
        };
        let renamed = file.and_then(|mut file| {
            file.flush()?;
            if let Some(part) = self.part.0.as_deref() {
                fs::rename(part, path)?;
            }
            Ok(file.bytes)
        });
        if renamed.is_ok() {
            self.part.0 = None;
        }
        renamed.map_err(|error| OutputError::Io {
            name: path.display().to_string(),
            error,
        })
    }
}

impl Sink for OutputFile {
    fn write(&mut self, record: &Record) -> Result<(), OutputError> {
        let anonymizer = self.anonymizer.as_ref();
        let written: io::Result<()> = match &mut self.writer {
            Writer::Csv(writer) => writer.write(record, anonymizer),
            Writer::Ipfix(writer) => writer.write(record),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.write(record, anonymizer),
        };
        self.records += 1;
        written.map_err(|error| OutputError::Io {
            name: self.path.display().to_string(),
            error,
        })
    }
}
