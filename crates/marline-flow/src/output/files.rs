//! Files of records in turn, each of which is complete before the next one begins.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::{OutputError, OutputFile, Sink};
use crate::anonymize::Anonymizer;
use crate::record::Record;

/// When a file is complete and another one begins. The default is one file.
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

    /// The end of the interval that a time is in.
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

/// The bytes that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that are complete.
    pub files: u64,
    /// Bytes, with those of the file that is open as far as they are known.
    pub bytes: u64,
    /// When the last file was completed, in nanoseconds since 1970.
    pub last_ns: Option<u64>,
}

/// One file, or several in turn.
///
/// One file has the name that was given. Those of several have the time of their beginning in UTC, before the end of the name: of
/// `flows.csv`, `flows-20261128T190500Z.csv`; a second one of that time is `flows-20261128T190500Z_2.csv`. A file without
/// records is not kept then.
pub struct Files {
    path: PathBuf,
    rotation: Rotation,
    anonymizer: Option<Anonymizer>,
    /// Nothing between a file and the first record of the next one.
    current: Option<OutputFile>,
    /// When the current file began, once a time is known.
    begun_ns: Option<u64>,
    /// When it is complete, though it is not full.
    due_ns: u64,
    /// The latest time.
    now_ns: u64,
    complete: Written,
}

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

    /// Completes the current file. Of several, one without records is dropped.
    fn complete(&mut self) -> Result<(), OutputError> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        if self.rotation.is_on() && current.records() == 0 {
            return Ok(());
        }
        self.complete.bytes += current.finish_as(&self.name())?;
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

    /// The name of the current file when it is complete.
    fn name(&self) -> PathBuf {
        if !self.rotation.is_on() {
            return self.path.clone();
        }
        let stem = self.path.file_stem().unwrap_or_default();
        let extension = self.path.extension().unwrap_or_default();
        let time = of_name(self.begun_ns.unwrap_or_default());
        let numbers = std::iter::once(String::new()).chain((2u64..).map(|n| format!("_{n}")));
        for number in numbers {
            let mut name = stem.to_owned();
            name.push(format!("-{time}{number}."));
            name.push(extension);
            let path = self.path.with_file_name(name);
            if path.symlink_metadata().is_err() {
                return path;
            }
        }
        self.path.clone()
    }
}

/// A time as it is in names: in UTC (ISO 8601, basic format), to the second.
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
            None => self
                .current
                .insert(OutputFile::create(&self.path, self.anonymizer.clone())?),
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
            // An interval in which nothing came has no file.
            let interval_ns = self.rotation.interval_ns.unwrap_or(1).max(1);
            return self.rotate(now_ns / interval_ns * interval_ns);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
