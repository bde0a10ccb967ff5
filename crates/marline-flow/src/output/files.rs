//! Consecutive files of records, each of which is complete before the next one begins.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::{OutputError, OutputFile, Sink};
use crate::anonymize::Anonymizer;
use crate::record::Record;

/// The conditions for beginning another file. The default is one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// At multiples of this time since 1970, in nanoseconds; more than 0.
    pub interval_ns: Option<u64>,
    /// When it has this many bytes.
    pub size: Option<u64>,
}

impl Rotation {
    /// Whether there may be more than one file.
    pub fn is_on(&self) -> bool {
        *self != Self::default()
    }

    /// The end of the interval that contains a time.
    fn end_ns(&self, now_ns: u64) -> u64 {
        match self.interval_ns {
            Some(interval_ns) => {
                let interval_ns = interval_ns.max(1);
                (now_ns / interval_ns + 1).saturating_mul(interval_ns)
            }
            None => u64::MAX,
        }
    }
}

/// The output written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Completed files.
    pub files: u64,
    /// Bytes, including those of the open file as far as they are known.
    pub bytes: u64,
    /// When the last file was completed, in nanoseconds since 1970.
    pub last_ns: Option<u64>,
}

/// One file, or several consecutive ones.
///
/// One file has the name that was given. Those of several have the time of their beginning in UTC, before the end of the name: of
/// `flows.csv`, `flows-20261128T190500Z.csv`; a second one of that time is `flows-20261128T190500Z_2.csv`. A file without
/// records is not kept then. No file is ever replaced by one of several, also if another process writes files of the same name.
pub struct Files {
    path: PathBuf,
    rotation: Rotation,
    anonymizer: Option<Anonymizer>,
    /// `None` between a file and the first record of the next one.
    current: Option<OutputFile>,
    /// When the current file began, once a time is known.
    begun_ns: Option<u64>,
    /// When it is complete, even if it is not full.
    due_ns: u64,
    /// The latest time.
    now_ns: u64,
    /// Whether several files were requested.
    is_divided: bool,
    /// The time in the name of the last file, and its number among those of that time.
    last: (String, u64),
    complete: Written,
}

/// Processes that may write files of the same name.
const MAX_WRITERS: u32 = 64;

impl Files {
    /// Begins the first file, in the format that the name stands for.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if the name stands for no format, or the file cannot be created.
    pub fn create(
        path: &Path,
        rotation: Rotation,
        anonymizer: Option<Anonymizer>,
    ) -> Result<Self, OutputError> {
        Ok(Self {
            path: path.to_owned(),
            rotation,
            current: Some(OutputFile::create(path, anonymizer.clone())?),
            anonymizer,
            begun_ns: None,
            due_ns: u64::MAX,
            now_ns: 0,
            is_divided: false,
            last: (String::new(), 0),
            complete: Written::default(),
        })
    }

    /// The bytes written so far.
    pub fn written(&self) -> Written {
        Written {
            bytes: self.complete.bytes + self.current.as_ref().map_or(0, OutputFile::size),
            ..self.complete
        }
    }

    /// Completes the last file.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if what is left cannot be written.
    pub fn finish(mut self) -> Result<Written, OutputError> {
        self.complete()?;
        Ok(self.complete)
    }

    /// Completes the current file, if it has records, and begins another; its name has the time then, also without a rotation.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if the file cannot be completed.
    pub fn divide(&mut self) -> Result<(), OutputError> {
        self.is_divided = true;
        match &self.current {
            Some(current) if current.records() > 0 => self.rotate(self.now_ns),
            _ => Ok(()),
        }
    }

    fn is_one_of_several(&self) -> bool {
        self.is_divided || self.rotation.is_on()
    }

    /// Completes the current file. Of several, one without records is dropped.
    fn complete(&mut self) -> Result<(), OutputError> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        self.complete.bytes += match self.is_one_of_several() {
            false => current.finish()?,
            true if current.records() == 0 => return Ok(()),
            true => current.finish_as_first_free(self.names())?,
        };
        self.complete.files += 1;
        self.complete.last_ns = Some(self.now_ns);
        Ok(())
    }

    /// Completes the current file; the next one begins at `begin_ns`.
    #[cold]
    fn rotate(&mut self, begin_ns: u64) -> Result<(), OutputError> {
        self.complete()?;
        self.begin(begin_ns);
        Ok(())
    }

    fn begin(&mut self, begin_ns: u64) {
        self.begun_ns = Some(begin_ns);
        self.due_ns = self.rotation.end_ns(begin_ns);
    }

    /// The candidates for the name of the completed current file, of which the first free one is used.
    fn names(&mut self) -> impl Iterator<Item = PathBuf> {
        let time = of_name(self.begun_ns.unwrap_or_default());
        if self.last.0 != time {
            self.last = (time, 0);
        }
        let (time, number) = &mut self.last;
        let path = &self.path;
        std::iter::from_fn(move || {
            *number += 1;
            let mut name = path.file_stem().unwrap_or_default().to_owned();
            name.push(match *number {
                1 => format!("-{time}."),
                number => format!("-{time}_{number}."),
            });
            name.push(path.extension().unwrap_or_default());
            Some(path.with_file_name(name))
        })
    }
}

/// A time as in names: in UTC (ISO 8601, basic format), to the second.
fn of_name(ns: u64) -> String {
    let seconds = i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX);
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, (hour, minute, second)) = (time.date(), time.to_hms());
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

impl Sink for Files {
    fn write(&mut self, record: &Record) -> Result<(), OutputError> {
        let current = match &mut self.current {
            Some(current) => current,
            // A process that began to write meanwhile has a file of its own.
            None => self.current.insert(OutputFile::create_as_one_of(
                &self.path,
                self.anonymizer.clone(),
                MAX_WRITERS,
            )?),
        };
        current.write(record)?;
        match self.rotation.size {
            Some(size) if current.size() >= size => self.rotate(self.now_ns),
            _ => Ok(()),
        }
    }

    #[inline]
    fn advance(&mut self, now_ns: u64) -> Result<(), OutputError> {
        self.now_ns = now_ns;
        if self.begun_ns.is_none() {
            self.begin(now_ns);
        }
        if now_ns >= self.due_ns {
            // An interval without records has no file.
            let interval_ns = self.rotation.interval_ns.unwrap_or(1).max(1);
            return self.rotate(now_ns / interval_ns * interval_ns);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
