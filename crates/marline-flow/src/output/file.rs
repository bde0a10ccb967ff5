//! A file of records, which gets its name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::csv::CsvWriter;
use super::ipfix::IpfixWriter;
#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;
use super::{OutputError, Sink};
use crate::anonymize::Anonymizer;
use crate::record::Record;

/// The format of a file of records.
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
    /// The format for the extension of a file's name.
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

/// A file being written. Until it is [finished](Self::finish) it is `.NAME.part` beside its name, and is removed if it is
/// dropped. While it is written it is locked, so that no two processes write the same one.
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
            // The error cannot be reported.
            let _ = fs::remove_file(path);
        }
    }
}

impl Part {
    /// The `number`th name beside a file, as `.NAME.part`.
    fn path(path: &Path, name: &OsStr, number: u32) -> PathBuf {
        let mut part = OsString::from(".");
        part.push(name);
        if number > 1 {
            part.push(format!("_{number}"));
        }
        part.push(".part");
        path.with_file_name(part)
    }

    /// Takes over a file that no process writes any more; `None` if one does.
    fn open(path: &Path) -> io::Result<Option<File>> {
        /// Another process may complete its file between two steps of an attempt, which is rare.
        const ATTEMPTS: u32 = 8;
        for _ in 0..ATTEMPTS {
            let mut options = OpenOptions::new();
            let file = options
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            if !lock(&file)? {
                return Ok(None);
            }
            if is_at(&file, path) {
                file.set_len(0)?;
                return Ok(Some(file));
            }
        }
        Ok(None)
    }
}

/// Locks a file until it is closed. Returns whether no other process holds the lock.
#[cfg(unix)]
fn lock(file: &File) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        // Some file systems have no locks.
        Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK | Errno::INVAL) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file that was opened still has its name: it may have been complete meanwhile, with another one.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let (Ok(ours), Ok(theirs)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
}

#[cfg(not(unix))]
fn lock(_file: &File) -> io::Result<bool> {
    Ok(true)
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

/// Gives a complete file an unused name. Returns whether it was free.
fn place(part: &Path, path: &Path) -> io::Result<bool> {
    match rename_new(part, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // Some file systems cannot do that at once.
        Err(_) if path.symlink_metadata().is_ok() => Ok(false),
        Err(_) => fs::rename(part, path).map(|()| true),
    }
}

#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(target_os = "linux"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

impl OutputFile {
    /// Begins a file in the format of its name. Addresses and names in it pass the `anonymizer`.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if the name has no known format, if the file cannot be created, or if another process writes it.
    pub fn create(path: &Path, anonymizer: Option<Anonymizer>) -> Result<Self, OutputError> {
        Self::create_as_one_of(path, anonymizer, 1)
    }

    /// The same for one of several writers of files of this name, each of which gets another one in the end.
    pub(super) fn create_as_one_of(
        path: &Path,
        anonymizer: Option<Anonymizer>,
        writers: u32,
    ) -> Result<Self, OutputError> {
        let io = |error| OutputError::Io {
            name: path.display().to_string(),
            error,
        };
        let format = Format::of(path).zip(path.file_name());
        let Some((format, name)) = format else {
            let name = path.display().to_string();
            return Err(OutputError::Format { name });
        };
        let mut free = None;
        for number in 1..=writers {
            let part = Part::path(path, name, number);
            if let Some(file) = Part::open(&part).map_err(io)? {
                free = Some((part, file));
                break;
            }
        }
        let Some((part, file)) = free else {
            let taken = io::Error::new(ErrorKind::ResourceBusy, "another process writes it");
            return Err(io(taken));
        };
        let file = Counted {
            file: BufWriter::new(file),
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

    /// The number of records written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The approximate size of the file so far, in bytes: of Parquet, those waiting for the end of a row group count
    /// uncompressed.
    pub fn size(&self) -> u64 {
        match &self.writer {
            Writer::Csv(writer) => writer.size(),
            Writer::Ipfix(writer) => writer.size(),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.size(),
        }
    }

    /// Completes the file and gives it its name, replacing a file of that name. Returns its size in bytes.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if the rest cannot be written.
    pub fn finish(self) -> Result<u64, OutputError> {
        let path = self.path.clone();
        self.finish_by(|part| fs::rename(part, path))
    }

    /// Completes the file and gives it the first free one of these names in the same directory.
    pub(super) fn finish_as_first_free(
        self,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<u64, OutputError> {
        self.finish_by(|part| {
            for path in paths {
                if place(part, &path)? {
                    return Ok(());
                }
            }
            Err(ErrorKind::AlreadyExists.into())
        })
    }

    fn finish_by(mut self, name: impl FnOnce(&Path) -> io::Result<()>) -> Result<u64, OutputError> {
        let file = match self.writer {
            Writer::Csv(writer) => writer.finish(),
            Writer::Ipfix(writer) => writer.finish(),
            #[cfg(feature = "parquet")]
            Writer::Parquet(writer) => writer.finish(),
        };
        // The file is open, and so locked, until it has its name.
        let named = file.and_then(|mut file| {
            file.flush()?;
            if let Some(part) = self.part.0.as_deref() {
                name(part)?;
            }
            Ok(file.bytes)
        });
        if named.is_ok() {
            self.part.0 = None;
        }
        named.map_err(|error| OutputError::Io {
            name: self.path.display().to_string(),
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
